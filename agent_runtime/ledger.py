"""What the journal already says of a turn: which messages, calls and changes are settled.

Pure: a fold over events. Knows nothing of asyncio, tools or the wire. A replay of the agent asks
the ledger first, so nothing settled is emitted, asked of a model, or run again.

Why a call may or may not run again (``decide_standing``):

- a finish in the history, or a decision handed over, settles it;
- a call for the browser or a person waits until it is decided;
- a call that provably never left its gate runs as if it were new: every attempt since it started
  ended by suspending itself, which an attempt does only while no tool body runs;
- otherwise it may have run. READ_ONLY and IDEMPOTENT calls run again with the same key. An UNSAFE
  one ends as UNKNOWN and is never run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from agent_runtime.errors import UnusableHistory
from agent_runtime.events import (
    CustomEvent,
    ErrorReported,
    Event,
    Executor,
    MessageCompleted,
    MessageStatus,
    Outcome,
    Part,
    Problem,
    Resolution,
    Safety,
    StateDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
    TurnSuspended,
    Usage,
)
from agent_runtime.limits import to_json

ASK_TOOL = "ask"
"""Tool name of a question to a person; its result is the answer."""

OUTCOME_UNKNOWN = Problem(
    reason="OUTCOME_UNKNOWN",
    message="released by an earlier attempt, which ended before the call did",
    user_message="This action may or may not have happened. Please check before repeating it.",
)


class Standing(Enum):
    """What the journal and the decisions say about a started call."""

    FINISHED = auto()
    MAY_RUN = auto()
    WAITING = auto()
    IN_DOUBT = auto()


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that an earlier attempt started."""

    started: ToolCallStarted
    standing: Standing
    never_ran: bool
    """Whether it is proved that no attempt has run its body yet."""
    finished: ToolCallFinished | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user sent in an earlier turn."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return joined_text(self.parts)


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool call of an earlier turn, and how it ended."""

    started: ToolCallStarted
    finished: ToolCallFinished


HistoryItem = UserMessage | MessageCompleted | ToolRecord


@dataclass(slots=True)
class TurnRecord:
    """One turn as its structural events tell it."""

    input: tuple[Part, ...] = ()
    attempt: int = 1
    """The attempt that the fold is in. Only its TurnStarted is sure to tell: the edge keeps no
    attempt with the other events."""
    messages: dict[str, MessageCompleted] = field(default_factory=dict)
    started: dict[str, tuple[ToolCallStarted, int]] = field(default_factory=dict)
    """Call id to the call and the attempt that started it."""
    finished: dict[str, ToolCallFinished] = field(default_factory=dict)
    answers: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    changes: dict[str, list[str | None]] = field(default_factory=dict)
    """State key to its values in order; ``None`` is a removal."""
    customs: int = 0
    notices: int = 0
    suspended_attempts: set[int] = field(default_factory=set)
    last_input_attempt: int = 0
    order: list[HistoryItem] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Add the next structural event of the turn. Others are ignored."""
        match event.payload:
            case TurnStarted(input=parts):
                self.attempt = max(event.attempt, 1)
                self._take_input(parts)
            case MessageCompleted() as message:
                self.messages[message.message_id] = message
                self.order.append(message)
            case ToolCallStarted() as started:
                self.started[started.call_id] = (started, self.attempt)
            case ToolCallFinished() as finished:
                self._take_finish(finished)
            case StateDelta(changes=changes):
                for change in changes:
                    self.changes.setdefault(change.key, []).append(change.value_json)
            case CustomEvent():
                self.customs += 1
            case ErrorReported():
                self.notices += 1
            case TurnSuspended():
                self.suspended_attempts.add(self.attempt)

    def _take_input(self, parts: tuple[Part, ...]) -> None:
        if self.attempt == 1:
            self.input = parts
            self.order.append(UserMessage(parts))
        elif parts:
            self.answer(parts, self.attempt)

    def answer(self, parts: tuple[Part, ...], attempt: int) -> None:
        """Give the input of a later attempt to the oldest question that is still open."""
        if attempt <= self.last_input_attempt:
            return
        self.last_input_attempt = attempt
        settled = self.finished.keys() | self.answers.keys()
        for call_id, (started, _) in self.started.items():
            if started.tool == ASK_TOOL and call_id not in settled:
                self.answers[call_id] = parts
                return

    def _take_finish(self, finished: ToolCallFinished) -> None:
        if finished.call_id in self.started and finished.call_id not in self.finished:
            self.finished[finished.call_id] = finished
            self.order.append(ToolRecord(self.started[finished.call_id][0], finished))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything an attempt needs to know of what was before it."""

    input: tuple[Part, ...]
    history: tuple[HistoryItem, ...] = ()
    """Settled messages and calls of earlier turns, oldest first."""
    state: dict[str, str] = field(default_factory=dict)
    """Session state when the turn began, key to JSON text."""
    turn: TurnRecord = field(default_factory=TurnRecord)
    calls: dict[str, RecordedCall] = field(default_factory=dict)
    unsettled: tuple[ToolCallFinished, ...] = ()
    """Finishes that this attempt must emit first: decided, or UNKNOWN."""

    @property
    def usage(self) -> Usage:
        """Model usage of the turn so far."""
        used = [message.usage for message in self.turn.messages.values() if message.usage]
        return sum(used, Usage())


def open_ledger(history: Iterable[Event], parts: tuple[Part, ...]) -> Ledger:
    """Return the ledger of a turn's first attempt; ``history`` holds the earlier turns."""
    turns = split_turns(history)
    return Ledger(input=parts, history=_settled(turns), state=_fold_state(turns))


def reopen_ledger(
    history: Iterable[Event],
    *,
    attempt: int,
    resolutions: Sequence[Resolution] = (),
    answer: tuple[Part, ...] = (),
) -> Ledger:
    """Return the ledger of a later attempt; the last turn in ``history`` is the one to continue.

    Raises:
        UnusableHistory: it holds no start of the turn.
    """
    turns = split_turns(history)
    if not turns:
        raise UnusableHistory("history holds no TurnStarted of the turn to continue")
    *earlier, turn = turns
    if answer:
        turn.answer(answer, attempt)
    decided = {resolution.call_id: resolution for resolution in resolutions}
    calls = {
        call_id: _record(turn, call_id, attempt, decided.get(call_id)) for call_id in turn.started
    }
    return Ledger(
        input=turn.input,
        history=_settled(earlier),
        state=_fold_state(earlier),
        turn=turn,
        calls=calls,
        unsettled=tuple(
            call.finished
            for call_id, call in calls.items()
            if call.finished is not None and call_id not in turn.finished
        ),
    )


def split_turns(history: Iterable[Event]) -> list[TurnRecord]:
    """Fold a session's events into its turns. A TurnStarted of attempt 1 begins a turn."""
    turns: list[TurnRecord] = []
    for event in history:
        if isinstance(event.payload, TurnStarted) and event.attempt <= 1:
            turns.append(TurnRecord())
        if turns:
            turns[-1].take(event)
    return turns


def decide_standing(
    started: ToolCallStarted,
    *,
    decided: Resolution | None,
    never_ran: bool,
) -> Standing:
    """Say what becomes of a call without a finish. See the module's rules."""
    if decided is not None and decided.finished is not None:
        return Standing.FINISHED
    if started.executor is Executor.CLIENT:
        return Standing.WAITING
    if decided is not None:
        return Standing.MAY_RUN
    if waits_for_approval(started):
        return Standing.WAITING if never_ran else Standing.IN_DOUBT
    if never_ran or started.safety in (Safety.READ_ONLY, Safety.IDEMPOTENT):
        return Standing.MAY_RUN
    return Standing.IN_DOUBT


def waits_for_approval(started: ToolCallStarted) -> bool:
    """Whether a call was held back for a person: it is UNSAFE and no checkpoint releases it."""
    return (
        started.executor is Executor.RUNTIME
        and started.safety is Safety.UNSAFE
        and not started.checkpoint_required
    )


def joined_text(parts: Iterable[Part]) -> str:
    """Return the text parts, joined by line breaks."""
    return "\n".join(part.text for part in parts if part.text)


def _record(
    turn: TurnRecord, call_id: str, attempt: int, decided: Resolution | None
) -> RecordedCall:
    started, started_by = turn.started[call_id]
    never_ran = _never_ran(turn, started, range(started_by, attempt))
    if call_id in turn.finished:
        return RecordedCall(started, Standing.FINISHED, never_ran, turn.finished[call_id])
    if call_id in turn.answers and decided is None:
        decided = Resolution(
            call_id=call_id, finished=_answered(call_id, joined_text(turn.answers[call_id]))
        )
    standing = decide_standing(started, decided=decided, never_ran=never_ran)
    finished = decided.finished if decided is not None else None
    if standing is Standing.IN_DOUBT:
        finished = ToolCallFinished(
            call_id=call_id, outcome=Outcome.UNKNOWN, problem=OUTCOME_UNKNOWN
        )
    return RecordedCall(started, standing, never_ran, finished)


def _never_ran(turn: TurnRecord, started: ToolCallStarted, attempts: range) -> bool:
    """Whether every attempt that could have run the call proves that it did not.

    One that suspended itself ran nothing that it left unfinished. The one that starts a call for a
    person or for the browser does not run it.
    """
    held_back = started.executor is Executor.CLIENT or waits_for_approval(started)
    proved = turn.suspended_attempts | ({attempts.start} if held_back else set())
    return proved.issuperset(attempts)


def _answered(call_id: str, text: str) -> ToolCallFinished:
    return ToolCallFinished(call_id=call_id, outcome=Outcome.SUCCEEDED, result_json=to_json(text))


def _settled(turns: Iterable[TurnRecord]) -> tuple[HistoryItem, ...]:
    """What an agent builds its prompt from. Withdrawn messages were never said."""
    return tuple(
        item
        for turn in turns
        for item in turn.order
        if not (isinstance(item, MessageCompleted) and item.status is MessageStatus.DISCARDED)
    )


def _fold_state(turns: Iterable[TurnRecord]) -> dict[str, str]:
    state: dict[str, str] = {}
    for turn in turns:
        for key, values in turn.changes.items():
            if values[-1] is None:
                state.pop(key, None)
            else:
                state[key] = values[-1]
    return state
