"""Gates: tool calls of the running attempt whose bodies nobody has been told to start.

Knows nothing of the runtime, which holds the other half of each gate. A gate leaves here the moment its
acknowledgement is sent: from then on nobody can say that the tool did not run.
"""

from __future__ import annotations


class Gates:
    """Call id -> (seq of its ``tool_start``, index of it in the attempt)."""

    def __init__(self) -> None:
        self._shut: dict[str, tuple[int, int]] = {}

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._shut

    @property
    def call_ids(self) -> frozenset[str]:
        """Calls that provably have not run in this attempt."""
        return frozenset(self._shut)

    def shut(self, call_id: str, seq: int, index: int) -> None:
        self._shut[call_id] = (seq, index)

    def forget(self, call_id: str) -> None:
        self._shut.pop(call_id, None)

    def clear(self) -> None:
        self._shut.clear()

    def open_through(self, durable_seq: int) -> int | None:
        """Open what is durable; return the index to acknowledge, which is cumulative."""
        if not self._shut:
            return None  # nearly always: this is asked with every token
        opened = [call for call, (seq, _) in self._shut.items() if seq <= durable_seq]
        indexes = [self._shut.pop(call)[1] for call in opened]
        return max(indexes, default=None)
