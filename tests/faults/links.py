"""Users at work while something is wrong with one link: every toxic, on every link of a scene.

A trouble begins amid an answer and is over after a while, or is there all the time where a link can be used
in spite of it. Knows nothing of how a history is judged.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from time import monotonic

from tests.faults.client import FOLLOW_SECONDS, Client
from tests.faults.scene import Node, Scene, Step
from tests.faults.users import User, pass_time
from tests.support.history import History
from tests.support.processes import POLL_SECONDS
from tests.support.tcp_proxy import TcpProxy
from tests.support.toxics import (
    Bandwidth,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
    Toxic,
    Vanish,
)

TROUBLE_SECONDS = 2.5
"""Longer than an attempt may be silent here, and than a write to the store may take; no longer than a lease."""
SETTINGS = {"EDGE_RUNTIME_IDLE_SECONDS": "2"}
TEXT = "naïve 汉字 \N{GRINNING FACE} e\N{COMBINING ACUTE ACCENT}"
"""Characters of one to four bytes, and one of two code points."""


class LinkName(Enum):
    """Who talks over a link."""

    BROWSER = "browser and edge"
    RUNTIME = "edge and runtime"
    STORE = "edge and Firestore"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A toxic, and what is known of it."""

    toxic: Toxic
    lasting: bool = False
    """People can live with it: it is there all the time."""
    ends: bool = False
    """It ends connections."""


# Those that take long come first, so that they are not waited for alone in the end.
TROUBLES: Mapping[str, Trouble] = {
    "down": Trouble(Down(), ends=True),
    "reset": Trouble(ResetPeer(0.2), ends=True),
    "black hole that ends": Trouble(Timeout(0.5), ends=True),
    "vanished peer": Trouble(Vanish()),
    "black hole": Trouble(Timeout()),
    "data limit": Trouble(LimitData(3_000), ends=True),
    "latency": Trouble(Latency(0.08, 0.06), lasting=True),
    "bandwidth": Trouble(Bandwidth(40_000), lasting=True),
    "slicer": Trouble(Slicer(7), lasting=True),
    "slow close": Trouble(SlowClose(0.5), lasting=True),
}


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of one trouble on one link."""

    link: LinkName
    trouble: str
    ended: int
    """How many connections it ended."""
    histories: list[History]
    failures: list[str] = field(default_factory=list)
    """What somebody waited for in vain."""

    @property
    def name(self) -> str:
        return f"{self.trouble} between {self.link.value}"

    @property
    def staged(self) -> bool:
        """Whether it did what it is there for, as far as that can be seen."""
        return self.ended > 0 or not TROUBLES[self.trouble].ends


async def every_trouble(scene: Scene, chance: random.Random) -> list[Episode]:
    """Stage all of them on every link; as many at once as there are nodes, as each has one to itself."""
    free: asyncio.Queue[Node] = asyncio.Queue()
    for node in scene.nodes:
        free.put_nowait(node)

    async def staged(link: LinkName, name: str, dice: random.Random) -> Episode:
        node = await free.get()
        episode = Episode(link, name, 0, [])
        try:
            episode = await suffer(scene, node, link, name, dice)
        except* AssertionError as failed:
            episode.failures.extend(map(str, failed.exceptions))
        free.put_nowait(node)
        return episode

    async with asyncio.TaskGroup() as group:
        staging = [
            group.create_task(staged(link, name, random.Random(chance.random())))
            for name in TROUBLES
            for link in links_of(scene)
        ]
    return [task.result() for task in staging]


def links_of(scene: Scene) -> list[LinkName]:
    """Return the links there are: to a file there is none."""
    return [link for link in LinkName if link is not LinkName.STORE or scene.store.emulator]


async def suffer(
    scene: Scene, node: Node, link: LinkName, name: str, chance: random.Random
) -> Episode:
    """Let three people work on a node while one of its links is in trouble.

    One watches an answer in two tabs, the second of them at another node; one stops an answer; one asks while
    the trouble is at its worst.
    """
    trouble = TROUBLES[name]
    wire, near = await _wire_of(scene, node, link)
    ended = wire.toxic_ends
    watcher, stopper, asker = [await User.arrive(near, chance) for _ in range(3)]
    watcher.steps = asker.steps = text_and_tools
    stopper.steps = without_an_end
    watcher.cancel_share, stopper.cancel_share, asker.cancel_share = 0.0, 1.0, 0.0
    tab = Client(watcher.client.session_id)
    elsewhere = [other.port for other in scene.nodes if other is not node]
    if trouble.lasting:
        wire.strike(trouble.toxic)
    try:
        async with asyncio.TaskGroup() as work:
            work.create_task(watcher.ask_and_watch())
            work.create_task(stopper.ask_and_watch())
            await _until_it_talks(watcher.client)
            work.create_task(tab.follow(*elsewhere))
            work.create_task(asker.ask_and_watch())
            if not trouble.lasting:
                wire.strike(trouble.toxic)
                await pass_time(TROUBLE_SECONDS)
                await wire.heal()
    finally:
        await wire.heal()
    watched, stopped, asked = [await user.history() for user in (watcher, stopper, asker)]
    both = replace(watched, clients=[watcher.client.log, tab.log])
    return Episode(link, name, wire.toxic_ends - ended, [both, stopped, asked])


def text_and_tools(_chance: random.Random) -> list[Step]:
    """Return tools of every kind amid text of every kind."""
    note = {"tool": "append_note", "args": {"text": TEXT}, "tell": True}
    return [
        {"say": TEXT, "words": 25, "word_ms": 20},
        note,
        {"sleep_tool": 0.6, "safety": "idempotent"},
        {"parallel": [note, {"sleep_tool": 0.3, "safety": "unsafe"}, note]},
        {"say": TEXT, "words": 25, "word_ms": 20},
    ]


def without_an_end(chance: random.Random) -> list[Step]:
    """Return so much more that only a stop ends it."""
    return [*text_and_tools(chance), {"say": TEXT, "words": 10_000, "word_ms": 20}]


async def _wire_of(scene: Scene, node: Node, link: LinkName) -> tuple[TcpProxy, Scene]:
    """Return the link's proxy, and the scene as it is seen by who reaches this node alone."""
    if link is LinkName.BROWSER:
        wire = await scene.wire(node.port)
        return wire, replace(scene, nodes=[replace(node, port=wire.port)])
    wire_or_none = node.wire if link is LinkName.RUNTIME else node.store_wire
    assert wire_or_none is not None, f"there is no wire between {link.value}"
    return wire_or_none, replace(scene, nodes=[node])


async def _until_it_talks(client: Client) -> None:
    deadline = monotonic() + FOLLOW_SECONDS
    while "token" not in client.types:
        assert monotonic() < deadline, "not a word"
        await asyncio.sleep(POLL_SECONDS)
