"""Random histories of a conversation that a browser follows over connections that break in every way.

Knows nothing of the browser. Everything is drawn from one seeded source, so a history is known by its seed. It
follows where an honest reader would be, says what an edge would answer it (the real attach table, the real
frames), and ends with the view that the journal has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from edge.core.control import CaughtUp, Control, Reconnect, Reset, Rewind, Status
from edge.core.cursor import START, Cursor
from edge.core.event import REASONING, TOKEN, TOOL_PROGRESS, Event
from edge.core.replay import Served, decide_attach
from edge.core.snapshot import Snapshot
from edge.wire.native import PING, control_frame, event_frame
from tests.edge.static.conversations import ENDS, KINDS, Talk

_SPOKEN = [*[TOKEN, REASONING, TOOL_PROGRESS] * 4, *KINDS]
_WORDS: Sequence[Control] = [Status("degraded"), Status("ok"), CaughtUp()]
ENDINGS = ["clean", "broken", "cut", "told", "gap"]
"""How a connection ends: tidily, with an error, amid a frame, as the server said it would, or because the
reader misses an event."""


def snapshot_of(talk: Talk) -> dict[str, Any]:
    snapshot = Snapshot("s1")
    snapshot.apply(talk.log.records)
    return snapshot.as_json()


@dataclass(slots=True)
class Reader:
    """Where an honest reader is, and which events it has."""

    cursor: Cursor = START
    has: list[Event] = field(default_factory=list)

    def obey(self, control: Control) -> None:
        if isinstance(control, Rewind):
            self.has = [event for event in self.has if event.seq <= control.to.seq]
            self.cursor = control.to
        elif isinstance(control, Reset):
            self.has, self.cursor = [], Cursor(0, control.first_seq - 1)

    def take(self, event: Event) -> None:
        self.has.append(event)
        self.cursor = Cursor(event.epoch, event.seq)


class History:
    """One conversation, its reader, and what each of the reader's connections carries."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._talk = Talk()
        self._speak(self._chance.randint(0, 12))
        if self._talk.turn is None:
            self._speak(1)
        self.snapshot = snapshot_of(self._talk)
        self._reader = Reader(Cursor.parse(self.snapshot["cursor"]), self._talk.log.events)
        self.connections = [self._connection(how) for how in self._endings()]
        self._talk.commits_tokens()
        self.connections.append(self._last())

    def as_json(self) -> dict[str, Any]:
        kept = ("cursor", "turns", "state")
        view = {name: value for name, value in snapshot_of(self._talk).items() if name in kept}
        return {"snapshot": self.snapshot, "connections": self.connections, "view": view}

    def _endings(self) -> Iterator[str]:
        return (self._chance.choice(ENDINGS) for _ in range(self._chance.randint(1, 5)))

    # --- the edge ---------------------------------------------------------------------------------

    def _speak(self, times: int) -> None:
        chance = self._chance
        for _ in range(times):
            if chance.random() < 0.08:
                self._talk.parks()
            elif chance.random() < 0.06:
                self._talk.ends(chance.choice(ENDS))
            else:
                self._talk.says(chance.choice(_SPOKEN), chance.randint(0, 2))

    def _events(self, owner: bool) -> Sequence[Event]:
        """What the answering edge shows: a follower only what is committed."""
        return self._talk.shown if owner else self._talk.log.events

    def _resolve(self, owner: bool) -> list[bytes]:
        """Answer the reader's cursor by the attach table."""
        view = self._talk.log.view
        events = self._events(owner)
        served = Served(
            epoch=view.epoch,
            first_seq=1,
            last_seq=events[-1].seq if events else 0,
            epoch_starts=view.epoch_starts,
            running=self._talk.turn is not None,
        )
        control = decide_attach(self._reader.cursor, served).control
        return [] if control is None else self._tell(control)

    def _tell(self, control: Control) -> list[bytes]:
        self._reader.obey(control)
        return [control_frame(control)]

    # --- connections ------------------------------------------------------------------------------

    def _connection(self, ending: str) -> dict[str, Any]:
        cursor = self._reader.cursor
        owner = self._chance.random() < 0.7
        frames = [PING, *self._resolve(owner)]
        for _ in range(self._chance.randint(0, 6)):
            frames += self._happening(owner)
        ending, last = self._end(ending, owner)
        return self._carried(cursor, b"".join(frames) + last, ending)

    def _last(self) -> dict[str, Any]:
        """The connection over which the reader hears all the rest."""
        cursor = self._reader.cursor
        frames = [PING, *self._resolve(owner=True), *self._deliver(10_000, owner=True)]
        return self._carried(cursor, b"".join([*frames, control_frame(CaughtUp())]), "open")

    def _carried(self, cursor: Cursor, body: bytes, ending: str) -> dict[str, Any]:
        cuts = sorted(self._chance.randint(0, len(body)) for _ in range(self._chance.randint(0, 4)))
        text = body.decode("ascii")
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if a < b]
        return {"cursor": str(cursor), "pieces": pieces, "ending": ending}

    def _happening(self, owner: bool) -> list[bytes]:
        chance = self._chance
        match chance.randint(0, 9):
            case 0:
                return self._repeat()
            case 1:
                return self._speak_from_the_past()
            case 2:
                return self._take_over(owner)
            case 3:
                return self._tell(chance.choice(_WORDS))
            case 4:
                return self._tell(Reset("unknown", 1)) if chance.random() < 0.2 else [PING]
            case 5:
                self._talk.commits_tokens()
        self._speak(chance.randint(0, 4))
        return self._deliver(chance.choice([0, 1, 3, 99]), owner)

    def _fresh(self, owner: bool) -> list[Event]:
        return [event for event in self._events(owner) if event.seq > self._reader.cursor.seq]

    def _deliver(self, most: int, owner: bool) -> list[bytes]:
        events = self._fresh(owner)[:most]
        for event in events:
            self._reader.take(event)
        return [event_frame(event) for event in events]

    def _repeat(self) -> list[bytes]:
        """Offer again what the reader has."""
        return [event_frame(event) for event in self._reader.has[-self._chance.randint(1, 5) :]]

    def _speak_from_the_past(self) -> list[bytes]:
        """Let an owner speak that is fenced: what it says was never in the log."""
        epoch, seq = self._reader.cursor.epoch, self._reader.cursor.seq
        if epoch < 2:
            return []
        body = '{"turn_id":"t1","message_id":"m1","text":"never said"}'
        return [event_frame(Event(epoch - 1, seq + 1, TOKEN, body))]

    def _take_over(self, owner: bool) -> list[bytes]:
        """Let the owner die with what it had not committed, amid the connection."""
        self._speak(self._chance.randint(0, 3))
        heard = self._deliver(self._chance.randint(0, 5), owner)
        self._talk.is_taken_over()
        return [*heard, *self._resolve(owner)]

    def _end(self, ending: str, owner: bool) -> tuple[str, bytes]:
        """Return how the connection really ends, and its last bytes."""
        fresh = self._fresh(owner)
        if ending == "told":
            return ending, control_frame(Reconnect("rolling", self._chance.randint(50, 500)))
        if ending == "gap" and len(fresh) > 1:
            return ending, b"".join(event_frame(event) for event in fresh[1:])
        if ending == "cut" and fresh:
            frame = event_frame(fresh[0])
            return "clean", frame[: self._chance.randint(0, len(frame) - 1)]
        return "broken" if ending == "broken" else "clean", b""
