"""The history checker: judges what a run left behind; a list of violations, empty when all is well.

Knows nothing of how the history was made (``tests.support.history`` says what of it can be seen from outside).
A request that was never answered may or may not have happened, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.support import answer_rules, log_rules, screen_rules
from tests.support.history import Found, History, Violation

RULES: tuple[Callable[[History], Iterator[Found]], ...] = (
    log_rules.log_is_well_formed,
    log_rules.turns_end_once,
    log_rules.turns_follow_each_other,
    log_rules.tools_end_once,
    log_rules.calls_start_once,
    log_rules.messages_restate_their_text,
    screen_rules.ids_name_one_content,
    screen_rules.events_come_in_order,
    screen_rules.structural_events_were_durable,
    screen_rules.screens_show_the_log,
    screen_rules.screens_show_the_whole_log,
    screen_rules.rewinds_take_tokens_back,
    answer_rules.tools_act_once,
    answer_rules.posts_start_one_turn,
    answer_rules.turns_come_to_an_end,
    answer_rules.cancels_hold,
    answer_rules.late_cancels_came_too_late,
)


def violations(history: History) -> list[Violation]:
    """Return every promise that this history breaks."""
    return [Violation(*found) for rule in RULES for found in rule(history)]
