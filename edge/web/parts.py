"""What the web room is built from. The composition root fills it in.

Knows nothing of how the parts are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edge.core.control import Control, Reconnect, ReconnectReason
from edge.core.recap import Recap
from edge.ports import Authenticator, Dialect, Encoder, Listener, Telemetry
from edge.sessions.registry import Registry


@dataclass(frozen=True, slots=True)
class Framing:
    """A browser format, as far as this room needs it: event frames arrive ready made."""

    content_type: str
    control: Callable[[Control], bytes]
    ping: bytes
    ping_event: bytes
    """A ping for clients that see events alone."""


@dataclass(frozen=True, slots=True)
class TurnFormat:
    """A browser format of another maker in which one stream tells one turn."""

    dialect: Dialect
    encoder: Callable[[Recap, int], Encoder]
    """From a turn as it is known when its stream begins, and the seq after which the stream speaks."""


@dataclass(frozen=True, slots=True)
class ThreadFormat:
    """A browser format of another maker in which one stream tells a whole session, or a part of it."""

    dialect: Dialect
    encoder: Callable[[Listener], Encoder]
    name: Callable[[str, str], str]
    """From a turn's id and that of one of its calls to what clients of the format call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that routes use."""

    registry: Registry
    authenticator: Authenticator
    telemetry: Telemetry
    framing: Framing
    ai_sdk: Mapping[str, TurnFormat]
    """By the major of the client, as it stands in the path: ``v7``."""
    ag_ui: ThreadFormat
    reconnect: Callable[[ReconnectReason], Reconnect]
    """Says when a client that is sent away shall come back: new and jittered at every call."""
    metrics: Callable[[], str]
    """Returns all metrics in the Prometheus text format."""
    allowed_hosts: frozenset[str]
    """Host names that requests may be addressed to, against DNS rebinding; empty: any."""
