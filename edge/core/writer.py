"""The writer: every decision of the edge process that holds a session's lease while a turn is under way.

Everything that can change the turn enters through ``Writer.receive`` as one of a closed set of inputs and
leaves as effects for the driver to perform. Knows nothing of tasks, sockets, stores or runtimes.

Invariants:

- one append in flight; a record is frozen when it is sent (P-LOG-3)
- nothing is numbered after an uncommitted ``tool_start`` but another one, so that a cancel can take
  tool starts back without leaving a hole
- a structural event is shown only once it is committed; a token only behind committed structural events
  and while the lease is fresh
- a gate is opened only after its ``tool_start`` was committed and shown, and never after a known cancel
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

from edge.core import drafts
from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.deadlines import Deadlines
from edge.core.event import SUSPENDED, TERMINAL, TOOL_START, Draft
from edge.core.gates import Gates
from edge.core.intake import DROP, Intake
from edge.core.lease import Lease
from edge.core.log import Acquire, AnyRecord, Cancel, Events, Resolve
from edge.core.outbox import Outbox
from edge.core.patience import Chance, Now, WriterSettings
from edge.core.retry import Retry
from edge.core.session import Session
from edge.core.showing import Showing
from edge.core.turn import EXECUTE, TurnState


class Stage(Enum):
    """Where the attempt stands."""

    WAITING = "waiting"
    """There is none; the next one starts when ``Retry`` says so, if the turn wants one."""
    STARTING = "starting"
    """Its ``turn_start`` is not known to be committed."""
    RUNNING = "running"
    OVER = "over"
    """Nothing more comes from a runtime; the writer closes once all is committed."""
    CLOSED = "closed"


class Writer:
    """State machine of the lease holder for one turn. ``fresh``: its ``turn_start`` was just committed."""

    def __init__(
        self,
        session: Session,
        me: str,
        settings: WriterSettings,
        *,
        chance: Chance,
        now: Now,
        fresh: bool,
    ) -> None:
        assert session.turn is not None
        assert session.view.holder == me
        self.session = session
        self.view = session.view
        self.turn = session.turn
        self.settings = settings
        self.lease = Lease(settings.ttl_seconds, now.seconds)
        self.outbox = Outbox(session.view, me, settings.retention_ms, settings.flush)
        self.stage = Stage.STARTING if fresh else Stage.WAITING
        self._start_seq = self.view.last_seq  # seq of the newest turn_start
        self._resolutions: Sequence[tuple[str, str]] = ()
        self._retry = Retry(settings, chance, now.seconds)
        self._backlog: deque[Draft] = deque()
        self._inflight: AnyRecord | None = None
        self._showing = Showing()
        self._gates = Gates()
        self._intake = Intake(session.turn, settings.event_limit_bytes)
        self._cancel_asked = False
        self._deadlines = Deadlines()
        self._polling = False
        self._renewed_at = float("-inf")
        self._effects: list[fx.Effect] = []

    @property
    def uncommitted_bytes(self) -> int:
        """What would be lost with this process: the measure of back-pressure."""
        return self.outbox.size_bytes + sum(len(draft.data) for draft in self._backlog)

    @property
    def uncommitted_events(self) -> int:
        return self.outbox.count + len(self._backlog)

    @property
    def _may_start(self) -> bool:
        """Whether nothing of the last attempt stands in the way of the next one."""
        busy = self._backlog or self.outbox.ends_with_tool_start
        return self.stage is Stage.WAITING and not busy

    def receive(self, item: ins.Input, now: Now) -> list[fx.Effect]:
        """Judge one input. The caller performs the effects in order before the next call."""
        if self.stage is not Stage.CLOSED:
            self._take(item, now)
            self._advance(now)
        effects, self._effects = self._effects, []
        return effects

    def wake_at(self) -> float | None:
        """Return the monotonic time at which a ``Tick`` is due; ``None`` once closed."""
        if self.stage is Stage.CLOSED:
            return None
        idle = self._inflight is None
        times = (
            self._renewed_at + self.settings.ttl_seconds / 3,
            self._deadlines.stop_at,
            self._deadlines.leave_at,
            self._retry.at if self._may_start else None,
            self.outbox.due_at() if idle else None,
            self._poll_at if idle and not self._polling else None,
        )
        return min(at for at in times if at is not None)

    @property
    def _poll_at(self) -> float:
        return self.lease.confirmed_at + self.settings.poll_seconds

    def _take(self, item: ins.Input, now: Now) -> None:
        match item:  # a Tick changes nothing by itself
            case ins.Received():
                self._on_received(item)
            case ins.StreamEnded():
                if self._current(item.attempt):
                    self._crashed(item.reason or "runtime_incomplete", retryable=item.retryable)
            case ins.Committed():
                self._on_committed(item, now)
            case ins.Met():
                self._inflight = None
                self.outbox.thaw()
                self._obey(item.records, now)
            case ins.Refused():
                self._close(fx.Close(fenced=True))
            case ins.Polled():
                self._on_polled(item, now)
            case ins.CancelAsked():
                self._cancel_asked = True
            case ins.AttemptLost():
                self._on_attempt_lost(item, now)
            case ins.DrainAsked():
                self._deadlines.leave_at = item.deadline

    def _current(self, attempt: int) -> bool:
        return self.stage is Stage.RUNNING and attempt == self.turn.attempt

    def _on_received(self, item: ins.Received) -> None:
        if not self._current(item.attempt) or not item.drafts:
            return
        self._backlog.extend(item.drafts)
        types = {draft.type for draft in item.drafts}
        if types & TERMINAL:
            self.stage = Stage.OVER
        elif SUSPENDED in types:
            self._wait("runtime_incomplete")

    def _on_committed(self, item: ins.Committed, now: Now) -> None:
        record, self._inflight = self._inflight, None
        assert record is not None
        self.lease.confirm(item.sent_at)
        self.view.apply(record)
        if isinstance(record, Events):
            self.outbox.forget_frozen()
        elif isinstance(record, Cancel):
            self._decide(record, now)

    def _on_polled(self, item: ins.Polled, now: Now) -> None:
        self._polling = False
        if self._inflight is not None:
            # The append in flight meets the same records; behind a newer acquire it can only fail.
            if any(isinstance(r, Acquire) and r.epoch > self.view.epoch for r in item.records):
                self._close(fx.Close(fenced=True))
            return
        self._obey([r for r in item.records if r.slot > self.view.last_slot], now)
        self.lease.confirm(item.sent_at)

    def _on_attempt_lost(self, item: ins.AttemptLost, now: Now) -> None:
        if not self._current(item.attempt):
            return
        if self._deadlines.listen_briefly(now.seconds):
            return
        self._effects.append(fx.DropStream())
        self._crashed("runtime_unavailable", retryable=True)
        if item.superseded and not self._polling:
            # A newer owner is likely: look before the next attempt is made durable.
            self._retry.plan(self._retry.reason, now.seconds + self.settings.backoff_base_seconds)
            self._poll()

    def _obey(self, records: Iterable[AnyRecord], now: Now) -> None:
        """Take in what others appended; none of ours may follow before it is obeyed."""
        for record in records:
            if not isinstance(record, Cancel | Resolve):
                self._close(fx.Close(fenced=True))
                return
            self.view.apply(record)
            self._decide(record, now)

    def _decide(self, record: Cancel | Resolve, now: Now) -> None:
        before = self.turn.cancelled
        self.session.decide(record)
        if self.turn.cancelled and not before:
            self._stop(now)

    def _stop(self, now: Now) -> None:
        """Take back every tool start that is not in the log, and tell the runtime."""
        taken = self.outbox.take_back_tool_starts()
        self._showing.forget(taken)
        for event in taken:
            self._intake.take_back(event.subject)
            self._gates.forget(event.subject)
            self.turn.forget_call(event.subject)
            self.session.history.remove(event)
        if self.stage is Stage.RUNNING:
            self._effects.append(fx.StopRuntime(self.turn.attempt))
            patience = self.settings.cancel_grace_seconds + self.settings.cancel_patience_seconds
            self._deadlines.stop_at = now.seconds + patience

    def _advance(self, now: Now) -> None:
        if self.stage is Stage.CLOSED:
            return
        self._meet_deadlines(now)
        self._number(now)
        if self._may_start:
            self._next_attempt(now)
        self._begin()
        self._number(now)
        self._show(now)
        self._open_gates()
        self._append(now)
        self._keep_lease(now)
        self._finish(now)

    def _meet_deadlines(self, now: Now) -> None:
        if self._deadlines.stop_is_due(now.seconds) and self.stage is Stage.RUNNING:
            self._effects.append(fx.DropStream())
            self._end(drafts.cancelled(self.turn.turn_id))
        if self._deadlines.draining and self._may_leave(now):
            self._effects.append(fx.DropStream())
            self.stage = Stage.OVER
        if self._deadlines.draining and self.stage is Stage.OVER and not self._backlog:
            self._leave_gates_shut()

    def _may_leave(self, now: Now) -> bool:
        """A draining owner waits for running tools, so that their results are not lost with it."""
        done = not self.turn.running_calls(self._gates.call_ids)
        return self._deadlines.late(now.seconds) or (self.stage is Stage.RUNNING and done)

    def _leave_gates_shut(self) -> None:
        """Tell the next owner which calls provably never ran, so that it may run them."""
        if self._gates.call_ids and self.turn.state is TurnState.RUNNING:
            pending = sorted(self._gates.call_ids)
            self._backlog.append(drafts.suspended(self.turn.turn_id, pending))
            self._gates.clear()

    def _number(self, now: Now) -> None:
        while self._backlog:
            draft = self._backlog[0]
            if self.outbox.ends_with_tool_start and draft.type != TOOL_START:
                return
            self._backlog.popleft()
            refusal = self._intake.refuses(draft)
            if refusal == DROP:
                continue
            if refusal is not None:
                self._violated(refusal)
                continue
            if draft.type in TERMINAL:
                for end in self.turn.loose_ends(self._gates.call_ids):
                    self._put(end, now)
            self._put(draft, now)

    def _put(self, draft: Draft, now: Now) -> None:
        event = self.outbox.number(draft, now.seconds, now.wall_ms)
        self.session.apply_event(event)
        self._showing.add(event)
        if draft.gated:
            self._gates.shut(draft.subject, event.seq, draft.index)

    def _violated(self, reason: str) -> None:
        self._backlog.clear()
        if self.stage is Stage.RUNNING:
            self._effects.append(fx.DropStream())
        self._end(drafts.failed(self.turn.turn_id, reason, retryable=False))

    def _end(self, terminal: Draft) -> None:
        self._backlog.append(terminal)
        self.stage = Stage.OVER

    def _crashed(self, reason: str, *, retryable: bool) -> None:
        if self.turn.cancelled:
            self._end(drafts.cancelled(self.turn.turn_id))
        elif not retryable:
            self._end(drafts.failed(self.turn.turn_id, reason, retryable=False))
        else:
            self._wait(reason)

    def _wait(self, reason: str, at: float | None = None) -> None:
        """Go on with the next attempt, once everything of this one has a place in the log."""
        self.stage = Stage.WAITING
        self._retry.plan(reason, at)

    def _next_attempt(self, now: Now) -> None:
        turn = self.turn
        if turn.finished:
            self.stage = Stage.OVER
        elif turn.cancelled:
            self._end(drafts.cancelled(turn.turn_id))
        elif self._deadlines.draining or not turn.needs_writer:
            self.stage = Stage.OVER
        elif self._retry.spent(turn.barren_attempts):
            self._end(drafts.failed(turn.turn_id, self._retry.reason, retryable=True))
        elif self._retry.due(turn.barren_attempts, now.seconds):
            self._start_attempt(now)

    def _start_attempt(self, now: Now) -> None:
        turn = self.turn
        # A gate that nobody was told to open is as good as a pending one; a decision outweighs it.
        shut = {call_id: EXECUTE for call_id in turn.calls if call_id in self._gates}
        self._resolutions = tuple((shut | dict(turn.resolutions())).items())
        self._put(drafts.turn_start(turn.turn_id, turn.agent, attempt=turn.attempt + 1), now)
        self._start_seq = self.view.last_seq + self.outbox.count
        self.stage = Stage.STARTING

    def _begin(self) -> None:
        """Call the runtime once the attempt is durable, and not before (it fences older ones)."""
        if self.stage is not Stage.STARTING or self.view.last_seq < self._start_seq:
            return
        if self.turn.cancelled:
            self._end(drafts.cancelled(self.turn.turn_id))
        elif self._deadlines.draining:
            self.stage = Stage.OVER
        else:
            self.stage = Stage.RUNNING
            self._gates.clear()
            self._effects.append(fx.Begin(self.turn.attempt, self._resolutions))

    def _show(self, now: Now) -> None:
        fresh = self.lease.fresh(now.seconds)
        if shown := self._showing.take(self.view.last_seq, lease_fresh=fresh):
            self._effects.append(fx.Show(shown))

    def _open_gates(self) -> None:
        if self.turn.cancelled or self._deadlines.draining or self.stage is not Stage.RUNNING:
            return
        index = self._gates.open_through(self.view.last_seq)
        if index is not None:
            self._effects.append(fx.Ack(self.turn.attempt, index))

    def _append(self, now: Now) -> None:
        if self._inflight is not None:
            return
        if self._cancel_asked and not self.turn.cancelled and not self.turn.finished:
            self._inflight = self.outbox.cancel_record(self.turn.turn_id, now.wall_ms)
        else:
            due = self.outbox.due_at()
            if due is None or now.seconds < due:
                return
            self._inflight = self.outbox.freeze(now.seconds, now.wall_ms)
        self._effects.append(fx.Append(self._inflight))

    def _keep_lease(self, now: Now) -> None:
        if now.seconds >= self._poll_at and self._inflight is None and not self._polling:
            self._poll()
        if now.seconds >= self._renewed_at + self.settings.ttl_seconds / 3:
            self._renewed_at = now.seconds
            self._effects.append(fx.Renew())

    def _poll(self) -> None:
        self._polling = True
        self._effects.append(fx.Poll(self.view.last_slot))

    def _finish(self, now: Now) -> None:
        settled = not self._backlog and self.outbox.empty and self._inflight is None
        if self.stage is not Stage.OVER or not (settled or self._deadlines.late(now.seconds)):
            return
        if (
            self.turn.state is TurnState.PARKED
            and self.turn.needs_writer
            and not self._deadlines.draining
        ):
            # It was decided while its suspension was being committed: the next tick goes on.
            self._wait(self._retry.reason, now.seconds)
            return
        self._close(fx.Close(released=not self.turn.finished, settled=settled))

    def _close(self, close: fx.Close) -> None:
        self.stage = Stage.CLOSED
        self._backlog.clear()
        self._showing.clear()
        self._effects += [fx.DropStream(), close]
