"""The configuration of the server process: one frozen value, checked before anything starts.

Knows nothing of where the variables come from; ``agent_runtime.__main__`` hands over the
environment. An agent's own settings are its own affair. An error names the variable and the rule,
never the value, which might be a secret in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_LISTEN = "127.0.0.1:50051"
DEFAULT_AGENTS = "agent_runtime.demo:assistant"
DEFAULT_MAX_TURNS = 1000
MAX_DRAIN_SECONDS = 8.0
"""P-RUN-11: the process exits within 10 s, and its last words and the tools it gives up take time."""

_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})", re.ASCII)
_PREFIX = "AGENT_RUNTIME_"
_KNOWN = {
    "AGENT_RUNTIME_AGENTS",
    "AGENT_RUNTIME_DRAIN_SECONDS",
    "AGENT_RUNTIME_ENV",
    "AGENT_RUNTIME_LISTEN",
    "AGENT_RUNTIME_MAX_TURNS",
    "AGENT_RUNTIME_TRACEBACKS",
}
_DEMO_PREFIX = "AGENT_RUNTIME_DEMO_"
"""The demo agents' own, which ``agent_runtime.demo.settings`` reads."""


class ConfigError(ValueError):
    """A variable cannot be used. The text is one line that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a server process needs to know."""

    listen: str = DEFAULT_LISTEN
    """``host:port``; port 0 lets the system choose. The server itself does not authenticate."""
    agents: str = DEFAULT_AGENTS
    """Comma-separated ``module:attribute``; the first agent is the default."""
    production: bool = False
    """Whether server reflection is off."""
    tracebacks: bool = False
    """Whether exceptions are logged in full, content and all: for an author's own machine."""
    drain_seconds: float = MAX_DRAIN_SECONDS
    """How long running tool bodies may take when the process is told to stop."""
    max_attempts: int = DEFAULT_MAX_TURNS
    """How many turns may run at once; above it a turn is refused with RESOURCE_EXHAUSTED."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Config:
        """Read the ``AGENT_RUNTIME_*`` variables; one that is set but empty counts as absent.

        Raises:
            ConfigError: one of them is unknown or cannot be used.
        """
        values = {name: value.strip() for name, value in environment.items() if value.strip()}
        for name in sorted(values):
            ours = name.startswith(_PREFIX) and not name.startswith(_DEMO_PREFIX)
            _require(not ours or name in _KNOWN, f"{name}: there is no such setting")
        return cls(
            listen=_listen(values.get("AGENT_RUNTIME_LISTEN", DEFAULT_LISTEN)),
            agents=values.get("AGENT_RUNTIME_AGENTS", DEFAULT_AGENTS),
            production=_production(values),
            tracebacks=_tracebacks(values),
            drain_seconds=_drain_seconds(values),
            max_attempts=_max_turns(values),
        )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _listen(text: str) -> str:
    match = _LISTEN.fullmatch(text)
    is_address = match is not None and int(match["port"]) <= 65_535
    _require(is_address, "AGENT_RUNTIME_LISTEN: must be host:port")
    return text


def _production(values: Mapping[str, str]) -> bool:
    # Cloud Run sets K_SERVICE; what runs there is production unless it says otherwise.
    default = "production" if "K_SERVICE" in values else "development"
    chosen = values.get("AGENT_RUNTIME_ENV", default)
    _require(
        chosen in ("production", "development"),
        "AGENT_RUNTIME_ENV: must be one of: development, production",
    )
    return chosen == "production"


def _tracebacks(values: Mapping[str, str]) -> bool:
    chosen = values.get("AGENT_RUNTIME_TRACEBACKS", "0")
    _require(chosen in ("0", "1"), "AGENT_RUNTIME_TRACEBACKS: must be 0 or 1")
    _require(
        chosen == "0" or not _production(values),
        "AGENT_RUNTIME_TRACEBACKS: exceptions may quote users, so production refuses it",
    )
    return chosen == "1"


def _drain_seconds(values: Mapping[str, str]) -> float:
    text = values.get("AGENT_RUNTIME_DRAIN_SECONDS", str(MAX_DRAIN_SECONDS))
    seconds = float(text) if _DECIMAL.fullmatch(text) else -1.0
    _require(
        0 < seconds <= MAX_DRAIN_SECONDS,
        f"AGENT_RUNTIME_DRAIN_SECONDS: must be a number above 0 and at most {MAX_DRAIN_SECONDS:g}, "
        "or the process is killed before it has stopped",
    )
    return seconds


def _max_turns(values: Mapping[str, str]) -> int:
    text = values.get("AGENT_RUNTIME_MAX_TURNS", str(DEFAULT_MAX_TURNS))
    turns = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    _require(
        1 <= turns <= 1_000_000, "AGENT_RUNTIME_MAX_TURNS: must be a whole number from 1 to 1000000"
    )
    return turns
