"""An AG-UI stream tells its listener's part of a thread, and is over only where AG-UI says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge.ports import Encoder, Listener
from edge.wire.ag_ui_stream import encoder
from tests.edge.wire.turns import Log, start


def listen(after_seq: int | None = None, **more: Any) -> Encoder:
    who = Listener(thread_id="thread", declares_version=True, after_seq=after_seq, **more)
    return encoder(who)


def read(reader: Encoder, log: Log) -> list[str]:
    stream = b"".join(reader.event(event) for event in log.events)
    return [
        json.loads(line)["type"]
        for line in stream.decode().replace("data: ", "").split("\n\n")[:-1]
    ]


def done_turn(log: Log) -> Log:
    return log.message("m1", "Hello").add("done", outcome="completed")


@pytest.mark.proves("P-AGUI-12")
def test_a_whole_thread_is_over_whenever_no_run_is_open() -> None:
    reader = listen()
    assert reader.over
    seen = []
    for event in done_turn(start()).start_turn("t2").events:
        reader.event(event)
        seen.append(reader.over)
    assert seen == [False, False, True, False]


@pytest.mark.proves("P-AGUI-1", "P-AGUI-12", "S26")
def test_one_run_is_told_alone_and_is_over_for_good() -> None:
    log = done_turn(done_turn(start()).start_turn("t2"))
    reader = listen(after_seq=3)
    assert not reader.over
    kinds = read(reader, log)
    assert kinds[0] == "RUN_STARTED"
    assert kinds[-1] == "RUN_FINISHED"
    assert kinds.count("RUN_STARTED") == 1
    assert reader.over
    assert read(reader, Log(seq=6).start_turn("t3").token("m1", "lost")) == []
    assert reader.rewind(7) == b""
    assert reader.over


def test_a_run_that_has_not_begun_is_not_over() -> None:
    reader = listen(after_seq=3)
    read(reader, done_turn(start()))
    assert not reader.over


@pytest.mark.proves("P-AGUI-9")
def test_a_run_restates_the_messages_that_came_before_it() -> None:
    log = done_turn(start()).start_turn("t2").token("m1", "lost").attempt(2)
    reader = listen(after_seq=3)
    snapshot = b"".join(reader.event(e) for e in log.events).decode().split("\n\n")[-2]
    ids = [m["id"] for m in json.loads(snapshot.removeprefix("data: "))["messages"]]
    assert ids == ["u-1", "t1.m1"]


def test_a_rewind_is_told_only_to_whom_something_was_told() -> None:
    log = start().token("m1", "one").token("m1", "two")
    for after_seq, is_told in ((0, True), (9, False)):
        reader = listen(after_seq=after_seq)
        read(reader, log)
        assert bool(reader.rewind(2)) is is_told


@pytest.mark.proves("P-AGUI-10")
def test_a_result_that_the_client_brought_is_not_told_back_to_it() -> None:
    log = start().tool("c1").tool("c2").suspend("client_tool", "c1", "c2")
    log.attempt(2).tool_end("c1", "succeeded").tool_end("c2", "succeeded")
    reader = listen(after_seq=4, answered=frozenset({"t1.c1"}))
    assert read(reader, log) == ["RUN_STARTED", "TOOL_CALL_RESULT"]
    whole = start().tool("c1").tool_end("c1", "succeeded")
    kinds = read(listen(after_seq=0, answered=frozenset({"t1.c1"})), whole)
    assert kinds == ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
