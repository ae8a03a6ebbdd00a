"""A stream of events as tokens that a person reads and a test compares.

Pure. Knows nothing of what makes a stream right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent_runtime.events import (
    CustomEvent,
    ErrorReported,
    Event,
    Heartbeat,
    MessageCompleted,
    MessageStatus,
    Outcome,
    ReasoningDelta,
    StateDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnFinished,
    TurnOutcome,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.testing.transcript import Transcript, split_attempts

BEFORE, AFTER = 8, 3
"""Tokens shown on either side of a place that is pointed at."""


def shape(stream: Transcript | Sequence[Event]) -> str:
    """Return a turn as one line of tokens, whatever its pace.

    ``turn_start say(m1) tool(c1 charge ok) say(m2) done(completed)``. A message stands where it is
    settled, and a call where it starts, together with its end, so that neither the size of deltas
    nor the pace of parallel tools shows. A message that an attempt left open is ``partial(m1)``, a
    call without an end ``tool(c1 charge ...)``. Progress is left out.
    """
    events = stream.events if isinstance(stream, Transcript) else stream
    ends = {p.call_id: p for event in events if isinstance(p := event.payload, ToolCallFinished)}
    tokens = (token for attempt in split_attempts(events) for token in _outline(attempt, ends))
    return " ".join(tokens)


def spell(event: Event) -> str:
    """Return one event as a token."""
    match event.payload:
        case TurnStarted():
            return "turn_start" if event.attempt <= 1 else f"turn_start({event.attempt})"
        case TextDelta(message_id=message_id) | ReasoningDelta(message_id=message_id):
            return f"delta({message_id})"
        case MessageCompleted() as message:
            return _spell_message(message)
        case ToolCallStarted(call_id=call_id, tool=tool):
            return f"start({call_id} {tool})"
        case ToolCallProgress(call_id=call_id):
            return f"progress({call_id})"
        case ToolCallFinished() as finished:
            return f"end({finished.call_id} {_spell_end(finished)})"
        case TurnSuspended(reason=reason, pending=pending):
            return f"suspended({' '.join((reason, *pending))})"
        case TurnFinished() as finish:
            return _spell_finish(finish)
        case Heartbeat():
            return "heartbeat"
    return _spell_note(event)


def point(events: Sequence[Event], place: int) -> str:
    """Return the tokens round a place, and below them an arrow at it.

    A run of equal tokens is one with its length, as in ``delta(m1)*40``. A place behind the last
    event is ``(end)``.
    """
    spelled = [*(spell(event) for event in events), "(end)"]
    before = _runs(spelled[:place])
    rest = [] if place == len(events) else _runs(spelled[place + 1 : -1])
    shown = [*(["..."] if len(before) > BEFORE else []), *before[-BEFORE:]]
    column = sum(len(token) + 1 for token in shown)
    after = [*rest[:AFTER], *(["..."] if len(rest) > AFTER else [])]
    line = " ".join([*shown, spelled[place], *after])
    return f"{line}\n{' ' * column}{'^' * len(spelled[place])}"


def _outline(attempt: Sequence[Event], ends: Mapping[str, ToolCallFinished]) -> Iterator[str]:
    settled = {
        p.message_id for event in attempt if isinstance(p := event.payload, MessageCompleted)
    }
    for event in attempt:
        match event.payload:
            case TextDelta(message_id=message_id) | ReasoningDelta(message_id=message_id):
                if message_id not in settled:
                    settled.add(message_id)
                    yield f"partial({message_id})"
            case ToolCallStarted(call_id=call_id, tool=tool):
                end = _spell_end(ends[call_id]) if call_id in ends else "..."
                yield f"tool({call_id} {tool} {end})"
            case ToolCallFinished() | ToolCallProgress() | Heartbeat():
                continue
            case _:
                yield spell(event)


def _spell_message(message: MessageCompleted) -> str:
    verb = "reason" if message.reasoning and not message.text else "say"
    whole = message.status is MessageStatus.COMPLETE
    return f"{verb}({message.message_id}{'' if whole else f' {message.status}'})"


def _spell_end(finished: ToolCallFinished) -> str:
    if finished.outcome is Outcome.SUCCEEDED:
        return "ok"
    reason = finished.problem.reason if finished.problem is not None else ""
    return f"{finished.outcome} {reason}".rstrip()


def _spell_finish(finish: TurnFinished) -> str:
    if finish.outcome is TurnOutcome.FAILED:
        return f"error({finish.problem.reason if finish.problem is not None else ''})"
    if finish.outcome is TurnOutcome.LIMIT_REACHED:
        return f"done(limit {finish.limit})"
    return f"done({finish.outcome})"


def _spell_note(event: Event) -> str:
    match event.payload:
        case StateDelta(changes=changes):
            keys = (c.key if c.value_json is not None else f"-{c.key}" for c in changes)
            return f"state({' '.join(keys)})"
        case ErrorReported(problem=problem):
            return f"notice({problem.reason})"
        case CustomEvent(name=name):
            return f"custom({name})"
    return type(event.payload).__name__


def _runs(tokens: Sequence[str]) -> list[str]:
    runs: list[tuple[str, int]] = []
    for token in tokens:
        if runs and runs[-1][0] == token:
            runs[-1] = token, runs[-1][1] + 1
        else:
            runs.append((token, 1))
    return [token if count == 1 else f"{token}*{count}" for token, count in runs]
