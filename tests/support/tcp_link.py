"""One connection through a TCP proxy, and the ways in which it can end or fall silent.

Knows nothing of when any of them is due.
"""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["up", "down"]
"""``up`` is from the client to the server."""
DIRECTIONS: tuple[Direction, ...] = ("up", "down")

# Linux's numbers; the module ``socket`` has no names for them.
_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A packet filter of one instruction that keeps no byte of any packet."""
_LINGER_NOT = struct.pack("ii", 1, 0)
"""With it, closing sends a reset."""


@dataclass(slots=True, eq=False)
class Link:
    """A client's connection, and the one to the server that goes with it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    timer: asyncio.TimerHandle | None = None
    """Cuts it when it is idle."""
    carried: Counter[Direction] = field(default_factory=Counter)
    """Bytes since the newest toxic was put on it."""
    _doom: asyncio.TimerHandle | None = None
    _vanished: bool = False

    def join(self, server: asyncio.StreamWriter) -> None:
        """Take the other half."""
        self.server = server
        for half in self._halves():
            # What is drained is then with the kernel, which sends it even if we close.
            half.transport.set_write_buffer_limits(0)

    def abort(self) -> None:
        """Drop both halves at once."""
        for timer in (self.timer, self._doom):
            if timer is not None:
                timer.cancel()
        for half in self._halves():
            half.transport.abort()

    def close(self) -> None:
        """Say a tidy goodbye to both ends."""
        for half in self._halves():
            half.close()

    def reset(self) -> None:
        """Drop both halves with a reset."""
        for half in self._open_sockets():
            half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.abort()

    def end_later(self, seconds: float, end: Callable[[], None]) -> None:
        """Let the connection end after a time, unless it recovers."""
        if self._doom is not None:
            self._doom.cancel()
        self._doom = asyncio.get_running_loop().call_later(seconds, end)

    def vanish(self) -> None:
        """Lose every packet that comes, so that this machine acknowledges none."""
        program = ctypes.create_string_buffer(_RETURN_NOTHING)
        filtering = struct.pack("HP", 1, ctypes.addressof(program))
        for half in self._open_sockets():
            half.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filtering)
        self._vanished = True

    def recover(self) -> None:
        """Take back what was to end it, and what makes it lose packets."""
        if self._doom is not None:
            self._doom.cancel()
        for half in self._open_sockets() if self._vanished else ():
            half.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        self._vanished = False

    def _halves(self) -> Iterator[asyncio.StreamWriter]:
        yield from (half for half in (self.client, self.server) if half is not None)

    def _open_sockets(self) -> Iterator[socket.socket]:
        for half in self._halves():
            if not half.is_closing():
                yield half.get_extra_info("socket")
