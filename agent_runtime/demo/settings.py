"""What can be set about the demo agents. Knows nothing of where the variables come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """Pace and places of the demo agents."""

    word_seconds: float = 0.03
    """Pause after each word, so that a person sees the streaming."""
    slow_seconds: float = 25.0
    """How long the slow report takes."""
    notes: Path = Path("var/notes.jsonl")
    """File that ``append_note`` appends to."""
    docs: Path | None = None
    """Folder with the project's documents; beside the package by default."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> DemoSettings:
        """Read the ``AGENT_RUNTIME_DEMO_*`` variables.

        Raises:
            ValueError: a number is none.
        """
        docs = environment.get("AGENT_RUNTIME_DEMO_DOCS")
        return cls(
            word_seconds=_number(environment, "AGENT_RUNTIME_DEMO_WORD_MS", 30.0) / 1000,
            slow_seconds=_number(environment, "AGENT_RUNTIME_DEMO_SLOW_SECONDS", 25.0),
            notes=Path(environment.get("AGENT_RUNTIME_DEMO_NOTES") or cls().notes),
            docs=Path(docs) if docs else None,
        )


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name}: must be a number from 0")
    return value
