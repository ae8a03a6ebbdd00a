"""One line per step of one run, for whoever has to understand a failing seed.

Knows nothing of how a run is judged. It listens at the store, at the screens and at the people's answers by
standing in for a few methods while the run lasts, so that runs which nobody reads pay nothing. The times are
virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from edge.core.log import AnyRecord, Events
from edge.core.writer import Writer
from edge.ports import SlotTaken, TurnEntry
from tests.simulation.attempt import Attempt
from tests.simulation.edges import Edge
from tests.simulation.judge import Judge, Screen
from tests.simulation.loop import Process, simulated
from tests.simulation.run import Outcome, run_seed
from tests.simulation.runtime import RuntimeProcess
from tests.simulation.store import Store

Write = Callable[[str], object]


def traced(seed: int, write: Write) -> Outcome:
    """Run one seed and write a line for everything that happens."""
    with _listening(write):
        return run_seed(seed)


@contextmanager
def _listening(write: Write) -> Iterator[None]:
    def say(line: str) -> None:
        write(f"{simulated().time():9.3f} {line}\n")

    patches = [
        _before(Process, "kill", lambda self: say(f"{self.name} is killed")),
        _before(Process, "pause", lambda self: say(f"{self.name} stops")),
        _before(Process, "resume", lambda self: say(f"{self.name} goes on")),
        _before(Edge, "boot", lambda self: say(f"{self.name} boots")),
        _before(Edge, "roll", lambda self: say(f"{self.writer} drains")),
        _before(Judge, "accuse", lambda self, kind, what: say(f"VIOLATION {kind.value}: {what}")),
        _before(
            Judge, "tool_ran", lambda self, attempt, call, safety: say(f"tool {call} {safety}")
        ),
        _before(Judge, "post_answered", lambda self, key, started: say(f"post {key}: {started}")),
        _before(Judge, "cancel_answered", lambda self, turn, answer: say(f"cancel: {answer}")),
        _before(
            Screen,
            "hear",
            lambda self, event: say(f"{self.log.name} {event.epoch}-{event.seq} {event.type}"),
        ),
        _before(Screen, "rewind", lambda self, seq: say(f"{self.log.name} rewinds to {seq}")),
        _before(Screen, "clear", lambda self, seq: say(f"{self.log.name} clears, from {seq}")),
        _before(
            RuntimeProcess,
            "begin",
            lambda self, call, stream, suspends: say(
                f"{self.process.name} begins attempt {call.ref.attempt} {call.resolutions}"
            ),
        ),
        _before(Attempt, "acknowledge", lambda self, index: say(f"acknowledged up to {index}")),
        _before(Attempt, "cancel", lambda self: say("the runtime is told to stop")),
        _before(
            Writer,
            "receive",
            lambda self, item, now: say(
                f"    e{self.view.epoch} {self.stage.value}: {type(item).__name__}"
            ),
        ),
        patch.object(Store, "append", _loud_append(Store.append, say)),
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def _before(owner: type, name: str, tell: Callable[..., None]) -> Any:
    """Return a patch that tells of a call before it is made."""
    original = getattr(owner, name)

    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return patch.object(owner, name, told)


def _loud_append(append: Any, say: Callable[[str], None]) -> Any:
    async def told(
        self: Store, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        try:
            await append(self, session_id, records, turn)
        except SlotTaken:
            say(f"slot {records[0].slot} is taken, {records[0].writer} is refused")
            raise
        for record in records:
            say(f"slot {record.slot}: {_described(record)}")

    return told


def _described(record: AnyRecord) -> str:
    kinds = ""
    if isinstance(record, Events):
        kinds = " " + " ".join(f"{event.seq}:{event.type}" for event in record.events)
    return f"{type(record).__name__} of {record.writer} in epoch {record.epoch}{kinds}"
