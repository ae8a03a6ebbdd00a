"""What must hold in every state.

P1 one writer, a log that only grows. P2 a tool runs once at most. P3 no fork and no gap on a screen. P4 what is
structural stays. P5 no tool start after an acknowledged cancel. P6 who has seen the end has seen it all.
P7 the end can always be reached (``explore``). P8 an acknowledged cancel is in the log, once. P9 what is
said not to have run has not. P10 a cancel stops no turn but its own. P11 only the newest attempt acts.
"""

from __future__ import annotations

from tests.simulation.model.records import (
    DONE,
    NOT_EXECUTED,
    OPENED,
    TOOL_START,
    Events,
    show_events,
)
from tests.simulation.model.state import (
    ACKNOWLEDGED,
    NOWHERE,
    QUIET,
    State,
    World,
    resolves_first,
    shown,
)


def violated(world: World, state: State) -> str | None:
    """Return the property that the state violates."""
    return (
        state.log.fault
        or _tools(world, state)
        or _cancels(state)
        or _screen(state, screen_by_now(world, state))
    )


def _tools(world: World, state: State) -> str | None:
    if not any(state.ledger) and not state.stopped_in_time:
        return None
    turns = _by_turn(state.log.events, world.scope.turns)
    for runs, kinds in zip(state.ledger, turns, strict=True):
        if runs > 1:
            return "P2 a tool ran twice"
        if runs and TOOL_START not in kinds:
            return "P2 a tool ran whose tool_start is not in the log"
        if runs and NOT_EXECUTED in kinds:
            return "P9 a tool ran that is said not to have been executed"
    if state.stopped_in_time and TOOL_START in turns[0]:
        return "P5 tool_start committed after an acknowledged cancel"
    return None


def _by_turn(events: Events, turns: int) -> list[str]:
    kinds = "".join(event.kind for event in events)
    if not kinds.startswith(OPENED):
        return [kinds]
    told = kinds.split(OPENED)[1:]
    return told + [""] * (turns - len(told))


def _cancels(state: State) -> str | None:
    if state.log.cancelled:
        wanted = {c.turn for c in state.cancellers if c.status != QUIET}
        if not state.log.cancelled <= wanted:
            return "P10 a turn was cancelled that nobody wanted stopped"
    for canceller in state.cancellers:
        if canceller.status == ACKNOWLEDGED and canceller.turn not in state.log.cancelled:
            return "P8 a cancel was acknowledged that is not in the log"
    return None


def screen_by_now(world: World, state: State) -> Events:
    """Return the most that the browser may have on its screen."""
    browser = state.browser
    if browser.edge == NOWHERE or resolves_first(world.rules, state, browser.edge):
        return browser.screen
    return browser.screen + shown(world.rules, state, browser.edge)[len(browser.screen) :]


def _screen(state: State, screen: Events) -> str | None:
    if not screen:
        return None
    log, epoch, previous = state.log, screen[-1].epoch, 0
    for place, event in enumerate(screen):
        logged = log.events[place] if place < len(log.events) else None
        settled = event.epoch < epoch or event.epoch < log.epoch
        if event.structural and event != logged and settled:
            return "P4 a structural event was shown that can never be in the log"
        if event.epoch < epoch and event != logged:
            return f"P3 a fork or a gap at seq {place + 1}: {show_events(screen)}"
        if logged is not None and logged.epoch == event.epoch and logged != event:
            return "P3 one id, two contents"
        if event.epoch < previous:
            return "P3 the screen went back to an older epoch without a rewind"
        previous = event.epoch
    if screen[-1].kind == DONE and screen != log.events[: len(screen)]:
        return "P6 the end was seen, but not everything before it"
    return None


def reached(world: World, state: State) -> bool:
    """Whether the newest turn has ended, and the browser shows all of it."""
    browser = state.browser
    if not state.log.done or browser.edge == NOWHERE:
        return False
    if resolves_first(world.rules, state, browser.edge):
        return False
    return screen_by_now(world, state) == state.log.events
