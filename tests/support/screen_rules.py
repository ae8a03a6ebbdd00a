"""What clients were shown, held against the log: rules of the history checker (``tests.support.checker``).

Knows nothing of how a history was made. Each rule names the sentences of PROTOCOL.md that it judges.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tests.support.history import COALESCABLE, Cleared, Found, Heard, History, Kind, Rewound


def ids_name_one_content(history: History) -> Iterator[Found]:
    """P-SSE-5: what an id stands for is the same for everybody, for ever."""
    known = {f"{e.epoch}-{e.seq}": (e.type, e.data) for e in history.events()}
    for client in history.clients:
        for event in client.heard():
            if known.setdefault(event.id, (event.type, event.data)) != (event.type, event.data):
                yield Kind.FORKED, f"{client.name}: {event.id} is not what others know by that id"


def events_come_in_order(history: History) -> Iterator[Found]:
    """P-SSE-6: without a gap, each at most once, unless a control event said so."""
    for client in history.clients:
        expected = None if client.after is None else client.after + 1
        seen: set[int] = set()
        for entry in client.entries:
            match entry:
                case Rewound(to):
                    expected = to + 1
                case Cleared(first_seq):
                    expected = first_seq
                case Heard():
                    if expected is not None and entry.seq != expected:
                        yield (
                            _disorder(entry.seq, expected, seen),
                            f"{client.name}: {entry.id} came where seq {expected} was due",
                        )
                    seen.add(entry.seq)
                    expected = entry.seq + 1


def _disorder(seq: int, expected: int, seen: Container[int]) -> Kind:
    if seq > expected:
        return Kind.LOST
    return Kind.DUPLICATED if seq in seen else Kind.REORDERED


def structural_events_were_durable(history: History) -> Iterator[Found]:
    """P-LOG-7, P-SSE-11: only a coalescable event may be shown and not be in the log."""
    durable = {(event.epoch, event.seq) for event in history.events()}
    for client in history.clients:
        for event in client.heard():
            if event.type not in COALESCABLE and (event.epoch, event.seq) not in durable:
                yield (
                    Kind.LOST,
                    f"{client.name}: {event.type} {event.id} was shown and is not in the log",
                )


def screens_show_the_log(history: History) -> Iterator[Found]:
    """P-SSE-6, P-SSE-11: in the end a screen is a run of the log, up to the end of what it knows."""
    log = {event.seq: (event.epoch, event.type, event.data) for event in history.events()}
    for client in history.clients:
        for event in client.screen() if client.settled else ():
            if log.get(event.seq) != (event.epoch, event.type, event.data):
                yield (
                    Kind.FORKED,
                    f"{client.name}: its screen ends with {event.id}, and the log has another",
                )
                break


def screens_show_the_whole_log(history: History) -> Iterator[Found]:
    """P-SSE-6: once all is over, nobody is left waiting for what is in the log."""
    last = history.records[-1].last_seq if history.records else 0
    for client in history.clients if history.over else ():
        if client.settled and client.position() != last:
            yield Kind.LOST, f"{client.name} ends at {client.position()}, and the log at {last}"


def rewinds_take_tokens_back(history: History) -> Iterator[Found]:
    """P-SSE-11: a rewind goes back, and never over a structural event."""
    structural = {(e.epoch, e.seq) for e in history.events() if e.structural}
    for client in history.clients:
        screen: list[Heard] = []
        for entry in client.entries:
            match entry:
                case Heard():
                    screen.append(entry)
                case Rewound(to):
                    gone = [event for event in screen if event.seq > to]
                    if screen and to > screen[-1].seq:
                        yield Kind.LOST, f"{client.name}: it was rewound forward, to {to}"
                    for event in gone:
                        if (event.epoch, event.seq) in structural:
                            yield (
                                Kind.LOST,
                                f"{client.name}: {event.type} {event.id} was taken back",
                            )
                    screen = screen[: len(screen) - len(gone)]
                case Cleared():
                    screen = []
