"""Unbroken's agent runtime: write an agent, serve it over gRPC, let it survive its process.

What an author needs is re-exported here. ``agent_runtime.context`` says what an agent may do, and
``python -m agent_runtime`` serves it. Knows nothing of the edge.
"""

from __future__ import annotations

from agent_runtime.agent import Agent, agent
from agent_runtime.context import TurnContext
from agent_runtime.errors import (
    ToolError,
    ToolFailed,
    ToolNotExecuted,
    ToolOutcomeUnknown,
    TurnFailed,
)
from agent_runtime.tools import Tool, ToolContext, tool

__all__ = [
    "Agent",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolFailed",
    "ToolNotExecuted",
    "ToolOutcomeUnknown",
    "TurnContext",
    "TurnFailed",
    "agent",
    "tool",
]
