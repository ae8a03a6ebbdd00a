"""The configuration of the server process: one frozen value, checked before anything starts.

Knows nothing of where the variables come from; ``agent_runtime.__main__`` hands over the
environment. An agent's own settings are its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_LISTEN = "127.0.0.1:50051"
DEFAULT_AGENTS = "agent_runtime.demo:assistant"
DEFAULT_DRAIN_SECONDS = 8.0
MAX_DRAIN_SECONDS = 3600.0
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")


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
    drain_seconds: float = DEFAULT_DRAIN_SECONDS
    """How long running tool bodies may take when the process is told to stop."""
    max_attempts: int = 1000
    """How many turns may run at once; above it a turn is refused with RESOURCE_EXHAUSTED."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Config:
        """Read the ``AGENT_RUNTIME_*`` variables; an empty one counts as unset.

        Raises:
            ConfigError: one of them cannot be used.
        """
        return cls(
            listen=_listen(environment.get("AGENT_RUNTIME_LISTEN") or DEFAULT_LISTEN),
            agents=environment.get("AGENT_RUNTIME_AGENTS") or DEFAULT_AGENTS,
            production=_production(environment),
            drain_seconds=_number(
                environment, "AGENT_RUNTIME_DRAIN_SECONDS", DEFAULT_DRAIN_SECONDS, MAX_DRAIN_SECONDS
            ),
            max_attempts=int(_number(environment, "AGENT_RUNTIME_MAX_TURNS", 1000, 1_000_000)),
        )


def _listen(text: str) -> str:
    match = _LISTEN.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(f"AGENT_RUNTIME_LISTEN={text!r} is not host:port")
    return text


def _production(environment: Mapping[str, str]) -> bool:
    # Cloud Run sets K_SERVICE; what runs there is production unless it says otherwise.
    default = "production" if environment.get("K_SERVICE") else "development"
    chosen = environment.get("AGENT_RUNTIME_ENV") or default
    if chosen not in ("production", "development"):
        raise ConfigError(f"AGENT_RUNTIME_ENV={chosen!r} is neither production nor development")
    return chosen == "production"


def _number(environment: Mapping[str, str], name: str, default: float, maximum: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= maximum:
        raise ConfigError(f"{name}={text!r} is not a number above 0 and at most {maximum:g}")
    return value
