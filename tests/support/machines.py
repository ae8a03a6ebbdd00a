"""How long the state machines run: a little in every test run, as long as asked for in a campaign.

Knows nothing of any machine. In a test run the examples are the same for the same code, so that a failure is somebody's
change; a campaign draws new ones: ``MACHINE_EXAMPLES=20000 pytest -o timeout=0 tests/core/test_cursor_machine.py``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

CAMPAIGN_EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "0"))
CAMPAIGN_STEPS = 50


def machine_settings(examples: int, steps: int) -> settings:
    """Return settings for ``examples`` worlds of ``steps`` steps, unless a campaign is run."""
    return settings(
        max_examples=CAMPAIGN_EXAMPLES or examples,
        stateful_step_count=max(steps, CAMPAIGN_STEPS) if CAMPAIGN_EXAMPLES else steps,
        deadline=None,
        derandomize=not CAMPAIGN_EXAMPLES,
        # Rules that do not apply to a world are refused by it: that is how a machine is written.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
