"""The edge's configuration: one frozen value, validated as a whole before anything starts.

Knows nothing of ``os.environ``: ``edge.main`` hands it a mapping. An error names the variable and the
rule, never the value, which might be a secret in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args

CheckpointMode = Literal["hold", "suspend"]
T = TypeVar("T", bound=str)

FENCE_MARGIN_SECONDS = 3.0
"""An owner that hears nothing from its journal falls silent this long before its lease runs out."""
STOP_SECONDS = 10.0
"""What Cloud Run gives between SIGTERM and SIGKILL."""
STOP_MARGIN_SECONDS = 2.5
"""Of those, what is kept for closing connections and clients after the drain."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""What this machine is called in a URL and in ``Host``."""

_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_TARGET = re.compile(r"[A-Za-z0-9._\-\[\]:/]+:[0-9]{1,5}", re.ASCII)
# Without a user's name: what is secret has no place in an address.
_URL = re.compile(
    r"(https?)://([A-Za-z0-9.\-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?(/[!-~]*)?", re.ASCII
)


class ConfigError(ValueError):
    """A variable is wrong; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class SqliteChoice:
    """Keep the journal in one file, which several edges of one machine may share."""

    path: Path


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """Keep the journal in this process; everything is lost with it."""


@dataclass(frozen=True, slots=True)
class FirestoreChoice:
    """Keep the journal in Firestore."""

    project: str
    database: str
    emulator_host: str | None


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Let in whoever brings a token of this issuer for this audience, signed with one of its keys."""

    issuer: str
    audience: str
    jwks_url: str


JournalChoice = SqliteChoice | MemoryChoice | FirestoreChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an edge is told. Each field names its variable; the defaults run on one machine."""

    host: str = "127.0.0.1"  # HOST
    port: int = 8080  # PORT; 0 takes a free one
    production: bool = False  # EDGE_ENV=production, or K_SERVICE is set (Cloud Run)
    journal: JournalChoice = SqliteChoice(Path("var/unbroken.sqlite3"))  # EDGE_JOURNAL
    tokens: TokenIssuer | None = None  # EDGE_AUTH_*; without them everybody is let in
    runtime_target: str = "127.0.0.1:50051"  # EDGE_RUNTIME_TARGET
    checkpoint_mode: CheckpointMode = "hold"  # EDGE_CHECKPOINT_MODE
    max_streams: int = 800  # EDGE_MAX_STREAMS
    ttl_seconds: float = 15.0  # EDGE_TTL_SECONDS: the lease
    hold_timeout_seconds: float = 10.0  # EDGE_HOLD_TIMEOUT_SECONDS: a tool at its gate
    ping_seconds: float = 10.0  # EDGE_PING_SECONDS: longest silence of a stream
    stall_seconds: float = 30.0  # EDGE_STALL_SECONDS: a viewer that makes no progress
    stream_life_seconds: float = 600.0  # EDGE_STREAM_LIFE_SECONDS
    disconnect_grace_seconds: float = 10.0  # EDGE_DISCONNECT_GRACE_SECONDS
    runtime_idle_seconds: float = 60.0  # EDGE_RUNTIME_IDLE_SECONDS: a silent attempt is dead
    start_wait_seconds: float = 10.0  # EDGE_START_WAIT_SECONDS: for journal and runtime
    drain_seconds: float = 7.0  # EDGE_DRAIN_SECONDS

    def __post_init__(self) -> None:
        _require(
            self.hold_timeout_seconds < self.ttl_seconds - FENCE_MARGIN_SECONDS,
            "EDGE_HOLD_TIMEOUT_SECONDS: must be less than EDGE_TTL_SECONDS minus "
            f"{FENCE_MARGIN_SECONDS:g}, or a stale edge could release a tool",
        )
        _require(
            self.drain_seconds <= STOP_SECONDS - STOP_MARGIN_SECONDS,
            f"EDGE_DRAIN_SECONDS: must be at most {STOP_SECONDS - STOP_MARGIN_SECONDS:g}, "
            f"or the process is killed before it has stopped",
        )
        _require(
            not (self.production and isinstance(self.journal, MemoryChoice)),
            "EDGE_JOURNAL: memory: is not durable, so production refuses it",
        )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Config:
        """Read the configuration; a variable that is set but empty counts as absent.

        Raises:
            ConfigError: a variable is unknown or wrong, or two of them contradict each other.
        """
        values = {name: value.strip() for name, value in environ.items() if value.strip()}
        unknown = sorted(name for name in values if name.startswith("EDGE_") and name not in _KNOWN)
        _require(not unknown, f"{unknown[0] if unknown else ''}: there is no such setting")
        production = _production(values)
        numbers = {
            field: _number(values[name], name, low, high)
            for name, (field, low, high) in _SECONDS.items()
            if name in values
        }
        return cls(
            host=values.get("HOST", "127.0.0.1"),
            port=_integer(values.get("PORT", "8080"), "PORT", 0, 65_535),
            production=production,
            journal=_journal(values, production),
            tokens=_token_issuer(values, production),
            runtime_target=_target(values.get("EDGE_RUNTIME_TARGET", "127.0.0.1:50051")),
            checkpoint_mode=_choice(values, "EDGE_CHECKPOINT_MODE", get_args(CheckpointMode)),
            max_streams=_integer(
                values.get("EDGE_MAX_STREAMS", "800"), "EDGE_MAX_STREAMS", 1, 100_000
            ),
            **numbers,
        )


_SECONDS: Mapping[str, tuple[str, float, float]] = {
    "EDGE_TTL_SECONDS": ("ttl_seconds", 3.5, 300),
    "EDGE_HOLD_TIMEOUT_SECONDS": ("hold_timeout_seconds", 0.1, 120),
    "EDGE_PING_SECONDS": ("ping_seconds", 0.05, 60),
    "EDGE_STALL_SECONDS": ("stall_seconds", 0.1, 300),
    "EDGE_STREAM_LIFE_SECONDS": ("stream_life_seconds", 0.5, 3_300),
    "EDGE_DISCONNECT_GRACE_SECONDS": ("disconnect_grace_seconds", 3, 3_600),
    "EDGE_RUNTIME_IDLE_SECONDS": ("runtime_idle_seconds", 0.5, 600),
    "EDGE_START_WAIT_SECONDS": ("start_wait_seconds", 0.1, 120),
    "EDGE_DRAIN_SECONDS": ("drain_seconds", 0, 60),
}
_AUTH = ("EDGE_AUTH_ISSUER", "EDGE_AUTH_AUDIENCE", "EDGE_AUTH_JWKS_URL")
_KNOWN = {
    *_AUTH,
    "EDGE_CHECKPOINT_MODE",
    "EDGE_ENV",
    "EDGE_JOURNAL",
    "EDGE_MAX_STREAMS",
    "EDGE_RUNTIME_TARGET",
    *_SECONDS,
}
_EMULATORS = ("FIRESTORE_EMULATOR_HOST", "FIREBASE_AUTH_EMULATOR_HOST")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _production(values: Mapping[str, str]) -> bool:
    on_cloud_run = "K_SERVICE" in values
    stage = _choice(
        values,
        "EDGE_ENV",
        ("production" if on_cloud_run else "development", "production", "development"),
    )
    _require(
        stage == "production" or not on_cloud_run,
        "EDGE_ENV: must be production where K_SERVICE is set",
    )
    if stage == "production":
        for name in _EMULATORS:
            _require(name not in values, f"{name}: production refuses emulators")
    return stage == "production"


def _journal(values: Mapping[str, str], production: bool) -> JournalChoice:
    kind, colon, rest = values.get("EDGE_JOURNAL", "sqlite:var/unbroken.sqlite3").partition(":")
    match (kind, colon, rest):
        case ("sqlite", ":", path) if path:
            return SqliteChoice(Path(path))
        case ("memory", ":", ""):
            return MemoryChoice()
        case ("firestore", ":", ""):
            return _firestore(values, production)
        case _:
            raise ConfigError("EDGE_JOURNAL: must be sqlite:PATH, memory: or firestore:")


def _firestore(values: Mapping[str, str], production: bool) -> FirestoreChoice:
    _require(
        "GOOGLE_CLOUD_PROJECT" in values,
        "GOOGLE_CLOUD_PROJECT: must name the project when EDGE_JOURNAL is firestore:",
    )
    return FirestoreChoice(
        project=values["GOOGLE_CLOUD_PROJECT"],
        database=values.get("FIRESTORE_DATABASE", "(default)"),
        emulator_host=None if production else values.get("FIRESTORE_EMULATOR_HOST"),
    )


def _token_issuer(values: Mapping[str, str], production: bool) -> TokenIssuer | None:
    missing = [name for name in _AUTH if name not in values]
    if len(missing) == len(_AUTH):
        return None
    _require(not missing, f"{', '.join(missing)}: must be set, too, where tokens are asked for")
    issuer, audience, jwks_url = (values[name] for name in _AUTH)
    url = _URL.fullmatch(jwks_url)
    plain_here = url is not None and url[2] in LOOPBACK_NAMES and not production
    _require(
        url is not None and (url[1] == "https" or plain_here),
        "EDGE_AUTH_JWKS_URL: must be an https: URL (outside production http: to this machine, too)",
    )
    return TokenIssuer(issuer, audience, jwks_url)


def _choice(values: Mapping[str, str], name: str, options: tuple[T, ...]) -> T:
    """Return the option that is set; the first is the default."""
    value = values.get(name, options[0])
    for option in options:
        if option == value:
            return option
    raise ConfigError(f"{name}: must be one of: {', '.join(sorted(set(options)))}")


def _target(value: str) -> str:
    _require(_TARGET.fullmatch(value) is not None, "EDGE_RUNTIME_TARGET: must be host:port")
    return value


def _integer(value: str, name: str, low: int, high: int) -> int:
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    _require(low <= number <= high, f"{name}: must be a whole number from {low} to {high}")
    return number


def _number(value: str, name: str, low: float, high: float) -> float:
    number = float(value) if _DECIMAL.fullmatch(value) else -1.0
    _require(low <= number <= high, f"{name}: must be a number from {low:g} to {high:g}")
    return number
