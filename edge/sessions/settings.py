"""Times and bounds of the sessions shell. Knows nothing of where they are configured."""

from __future__ import annotations

from dataclasses import dataclass, field

from edge.core.patience import WriterSettings
from edge.core.replay import HOLD_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Reasons stand beside the less obvious defaults."""

    writer: WriterSettings = field(default_factory=WriterSettings)
    ping_seconds: float = 10.0
    """Longest silence on a stream. Half of it would still beat a 15 s proxy."""
    stall_seconds: float = 30.0
    """How long one write may take before the viewer is closed, resumably."""
    stream_life_seconds: float = 600.0
    """Mean life of a stream (+-20 %): an HTTP/1.1 container is not always told that a client left."""
    follow_seconds: float = 0.25
    """How often a follower reads the log while a turn is under way."""
    idle_follow_seconds: float = 1.0
    """How often it reads the log of a session in which nothing happens."""
    disconnect_grace_seconds: float = 10.0
    """How long a turn with ``on_disconnect: cancel`` outlives its last viewer."""
    uncommitted_limit_events: int = HOLD_LIMIT
    uncommitted_limit_bytes: int = 2 * 1024 * 1024
    tail_limit_bytes: int = 1024 * 1024
    """What a session keeps in memory for its viewers; slower ones read the journal."""
    batch_limit_bytes: int = 64 * 1024
    """What one write to a viewer carries."""
    pace_limit_bytes: int = 32 * 1024
    """With ``pacing: viewer``: how far the only viewer may lag before the model is paused."""
    max_streams: int = 800
    """Streams of this process; a further one is asked to come back."""
    max_streams_per_session: int = 32
    page_records: int = 100
    """Records read from the journal at once."""
    idle_room_seconds: float = 60.0
    """How long a session nobody uses stays in memory."""
