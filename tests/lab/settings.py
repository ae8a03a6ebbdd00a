"""What can be set about the lab: one frozen value, read from a mapping and checked before anything starts.

Knows nothing of ``os.environ``. An error names the variable and the rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

LOOPBACK = ("127.0.0.1", "localhost")
_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)


class SettingsError(ValueError):
    """The lab must not or cannot start so; the message is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the lab listens, and how long things take."""

    host: str = "127.0.0.1"  # HOST
    port: int = 8080  # PORT; 0 takes a free one
    tool_seconds: float = 25.0  # LAB_TOOL_SECONDS: the slow tool
    idle_seconds: float = 15.0  # LAB_IDLE_SECONDS: the network cuts what is silent for so long
    word_seconds: float = 0.15  # LAB_WORD_SECONDS: the agents' pace

    @property
    def ping_seconds(self) -> float:
        """How long the edges may be silent: so that several pings fit into what the network bears."""
        return self.idle_seconds / 3

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings.

        Raises:
            SettingsError: one is wrong; or this is production, or an address that others can reach:
                whoever reaches the lab can kill its processes.
        """
        defaults = cls()
        values = {name: value.strip() for name, value in environ.items() if value.strip()}
        stages = {values.get("EDGE_ENV"), values.get("AGENT_RUNTIME_ENV")}
        if "K_SERVICE" in values or "production" in stages:
            raise SettingsError("the lab kills and cuts on demand, so production refuses it")
        host = values.get("HOST", defaults.host)
        if host not in LOOPBACK:
            raise SettingsError(f"HOST: the lab listens only on {' or '.join(LOOPBACK)}")
        return cls(
            host=host,
            port=_port(values.get("PORT", str(defaults.port))),
            tool_seconds=_seconds(values, "LAB_TOOL_SECONDS", defaults.tool_seconds),
            idle_seconds=_seconds(values, "LAB_IDLE_SECONDS", defaults.idle_seconds),
            word_seconds=_seconds(values, "LAB_WORD_SECONDS", defaults.word_seconds),
        )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:6]) <= 65_535):
        raise SettingsError("PORT: must be a whole number from 0 to 65535")
    return int(text)


def _seconds(values: Mapping[str, str], name: str, default: float) -> float:
    text = values.get(name, str(default))
    if _DECIMAL.fullmatch(text) is None or not 0 < float(text) <= 600:
        raise SettingsError(f"{name}: must be a number above 0 and at most 600")
    return float(text)
