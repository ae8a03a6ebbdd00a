"""For an author's own tests: run an agent in process, break its turn anywhere, judge its stream.

What is public is re-exported here; docs/testing-agents.md shows how to use it. Knows nothing of gRPC,
of an edge or of pytest.
"""

from __future__ import annotations

from agent_runtime.testing.answers import DENIED, FAILED, Answers
from agent_runtime.testing.bodies import Execution, Fakes
from agent_runtime.testing.disposal import assert_disposable
from agent_runtime.testing.faults import Fault, cancel_after, crash_after, drain_after, hold
from agent_runtime.testing.harness import AgentStuck, Scene, Setting, run_agent
from agent_runtime.testing.replay import assert_replayable
from agent_runtime.testing.sequence import assert_well_formed
from agent_runtime.testing.tokens import shape
from agent_runtime.testing.transcript import CallRecord, Transcript

__all__ = [
    "DENIED",
    "FAILED",
    "AgentStuck",
    "Answers",
    "CallRecord",
    "Execution",
    "Fakes",
    "Fault",
    "Scene",
    "Setting",
    "Transcript",
    "assert_disposable",
    "assert_replayable",
    "assert_well_formed",
    "cancel_after",
    "crash_after",
    "drain_after",
    "hold",
    "run_agent",
    "shape",
]
