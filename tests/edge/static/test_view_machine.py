"""A view, told anything that an edge may tell: the screen is always what survived, and nothing twice.

Knows nothing of drawing. The library's own fold runs, in one long-lived node.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from edge.core.control import CaughtUp, Control, Reconnect, Reset, Rewind, Status
from edge.core.cursor import START, Cursor
from edge.core.event import REASONING, TOKEN, TOOL_PROGRESS, Event
from edge.core.session import cursor_at
from edge.core.snapshot import Snapshot
from edge.wire.native import control_frame, event_frame
from tests.edge.static.conversations import ENDS, KINDS, Talk, screen
from tests.support.machines import machine_settings
from tests.support.node import find_node
from tests.support.sse import EventStreamParser

kinds = st.lists(st.sampled_from([*[TOKEN, REASONING, TOOL_PROGRESS] * 4, *KINDS]), max_size=5)
QUIET = [CaughtUp(), Reconnect("deadline", 1_000)]


class Node:
    """A node process that folds events."""

    def __init__(self, node: str) -> None:
        script = Path(__file__).with_name("reducer.mjs")
        self._process = subprocess.Popen(
            [node, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._pages = 0

    def new_page(self) -> int:
        self._pages += 1
        return self._pages

    def fold(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "node died: its words are above"
        return dict(json.loads(line))

    def close(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    started = Node(find_node())
    yield started
    started.close()


class Page:
    """What one page holds: its view, which is kept in node, and the events it was given since it was cleared."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.number = node.new_page()
        self.has: list[Event] = []
        self.position = START
        self.parser = EventStreamParser()
        self.facts: dict[str, Any] = {}
        """What was settled on the screen."""
        self.look(self.fold())

    def fold(self, **asked: Any) -> dict[str, Any]:
        return self.node.fold(page=self.number, **asked)

    def hear(self, frames: Sequence[bytes]) -> list[bool]:
        """Read frames as a browser does; return which of them left the state as it was."""
        heard = [m for frame in frames for m in self.parser.feed(frame)]
        events = [{"type": m.type, "id": m.last_event_id, "data": m.json} for m in heard]
        answer = self.fold(events=events)
        assert not answer["gap"]
        self.look(answer)
        return list(answer["unchanged"])

    def look(self, answer: dict[str, Any]) -> None:
        self.view, self.screen = answer["view"], answer["screen"]
        for keys in self.screen["keys"]:
            assert len(keys) == len(set(keys)), "an item is drawn by its key"
        facts = dict(settled(self.screen["turns"]))
        assert self.facts.items() <= facts.items(), "what was settled flashed back"
        self.facts = facts

    def clear(self, position: Cursor) -> None:
        self.has, self.facts, self.position = [], {}, position


def settled(turns: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for turn in turns:
        if turn["finished"]:
            yield turn["id"], turn["finished"]
        for item in turn["items"]:
            if item[0].startswith("m") and item[2] != "streaming":
                yield f"{turn['id']} {item[0]}", item[1]
            elif item[0].startswith("c") and item[2]:
                yield f"{turn['id']} {item[0]}", item[2]


class PageMachine(RuleBasedStateMachine):
    """An edge that talks, and a page that hears it over connections that come, go and repeat themselves."""

    node: Node

    def __init__(self) -> None:
        super().__init__()
        self.talk = Talk()
        self.page = Page(self.node)

    # --- the edge ---------------------------------------------------------------------------------

    @rule(kinds=kinds, number=st.integers(0, 2), heard=st.sampled_from([0, 2, 99, 99]))
    def says(self, kinds: list[str], number: int, heard: int) -> None:
        for kind in kinds:
            self.talk.says(kind, number)
        self.hears(heard)

    @rule()
    def parks(self) -> None:
        self.talk.parks()

    @rule(kind=st.sampled_from(ENDS))
    def ends(self, kind: str) -> None:
        self.talk.ends(kind)

    @rule(kept=st.integers(0, 2), lost=kinds, number=st.integers(0, 2), heard=st.integers(0, 9))
    def is_taken_over(self, kept: int, lost: list[str], number: int, heard: int) -> None:
        """Amid an answer; the page's stream is resolved again, and it is told what did not survive."""
        for _ in range(kept):
            self.talk.says(TOKEN, 0)
        self.talk.commits_tokens()
        for kind in lost:
            self.talk.says(kind, number)
        self.hears(heard)
        self.talk.is_taken_over()
        survived = [event for event in self.page.has if event in self.talk.log.events]
        if survived != self.page.has:
            self.page.has = survived
            position = self.id_at(survived[-1].seq if survived else self.page.position.seq)
            self.page.position = position
            self.page.hear([control_frame(Rewind(position))])
            self.compare()

    # --- the connection ---------------------------------------------------------------------------

    @rule(most=st.integers(1, 4))
    def hears(self, most: int) -> None:
        fresh = [e for e in self.talk.shown if e.seq > self.page.position.seq][:most]
        self.page.hear([event_frame(event) for event in fresh])
        self.page.has += fresh
        if fresh:
            self.page.position = Cursor(fresh[-1].epoch, fresh[-1].seq)
        self.compare()

    @rule(back=st.integers(1, 8), times=st.integers(1, 2))
    def is_offered_again_what_it_has(self, back: int, times: int) -> None:
        frames = [event_frame(event) for event in self.page.has[-back:]]
        assert all(self.page.hear(frames * times))
        self.compare()

    @rule()
    def an_old_connection_speaks_up(self) -> None:
        """Its owner is fenced; what it says was never in the log."""
        epoch, seq = self.page.position.epoch, self.page.position.seq
        if epoch > 1:
            late = Event(
                epoch - 1, seq + 1, "token", '{"turn_id":"t1","message_id":"m1","text":"!"}'
            )
            assert self.page.hear([event_frame(late)]) == [True]
            self.compare()

    @rule()
    def an_event_is_missing(self) -> None:
        rest = [event for event in self.talk.shown if event.seq > self.page.position.seq + 1]
        if rest:
            event = {"type": rest[0].type, "id": f"{rest[0].epoch}-{rest[0].seq}", "data": {}}
            answer = self.page.fold(events=[event])
            assert answer["gap"]
            assert answer["view"] == self.page.view

    @rule(control=st.sampled_from([*QUIET, Status("degraded"), Status("ok")]))
    def is_told(self, control: Control) -> None:
        self.page.hear([control_frame(control)])
        if isinstance(control, Status):
            assert self.page.screen["degraded"] == (control.state == "degraded")
        self.compare()

    @rule(share=st.floats(0.0, 1.0))
    def is_reset(self, share: float) -> None:
        kept_after = int(share * self.talk.log.view.last_seq)
        self.page.clear(Cursor(0, kept_after))
        self.page.hear([control_frame(Reset("expired", kept_after + 1))])
        self.compare()

    @rule()
    def is_loaded_anew(self) -> None:
        """It begins with a snapshot of the committed log, and its streams go on from there."""
        log = self.talk.log
        snapshot = Snapshot("s1")
        snapshot.apply(log.records)
        position = self.id_at(log.view.last_seq)
        self.page.clear(position)
        self.page.look(self.page.fold(snapshot=snapshot.as_json()))
        self.page.parser = EventStreamParser(last_event_id=str(position), _id=str(position))
        self.page.has = log.events
        self.compare()

    # --- what must hold ---------------------------------------------------------------------------

    def compare(self) -> None:
        """The screen is a fold of what survived, however the page came by it."""
        shown = self.page.screen
        assert shown["cursor"] == str(self.page.position)
        expected = screen(self.page.has)
        assert shown["turns"] == expected
        unfinished = [turn["id"] for turn in expected if not turn["finished"]]
        assert shown["open"] == (unfinished[-1] if unfinished else None)

    def id_at(self, seq: int) -> Cursor:
        return cursor_at(self.talk.log.view.epoch_starts, seq)

    def teardown(self) -> None:
        """In the end the view of whoever heard everything is the journal's own, in every member."""
        self.hears(1_000)
        self.talk.commits_tokens()
        if self.page.has and self.page.has[0].seq == 1:
            assert journals_shape(self.page.view) == the_journals(self.talk)


def journals_shape(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view without what only a page needs."""
    items = [
        [{k: v for k, v in i.items() if k != "key"} for i in t["items"]] for t in view["turns"]
    ]
    turns = [turn | {"items": mine} for turn, mine in zip(view["turns"], items, strict=True)]
    return {"cursor": view["cursor"], "turns": turns, "state": view["state"]}


def the_journals(talk: Talk) -> dict[str, Any]:
    """Return the snapshot of a conversation's log, without what only an edge needs."""
    snapshot = Snapshot("s1")
    snapshot.apply(talk.log.records)
    return {k: v for k, v in snapshot.as_json().items() if k in ("cursor", "turns", "state")}


@pytest.mark.timeout(600)
@pytest.mark.proves("S17", "S25", "S31", "P-EVT-2", "P-EVT-3", "P-SSE-11", "P-SSE-12", "P-HTTP-9")
def test_whatever_a_page_is_told_it_shows_what_survived_and_shows_it_once(node: Node) -> None:
    machine = type("PageMachine", (PageMachine,), {"node": node})
    run_state_machine_as_test(machine, settings=machine_settings(100, 30))
