"""What AG-UI's clients post: a ``RunAgentInput``, of which only the end is new.

Knows nothing of HTTP or sessions. A user's message is the input of a turn; entries of ``resume`` and the
messages of a tool at the end bring what calls waited for. Everything else repeats what the log has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from edge.core.requests import TurnRequest
from edge.web.chat_shapes import Object, approval, file_part, read_id, read_object, refused
from edge.web.problems import Refused
from edge.web.shapes import read_decision, read_turn
from edge.web.strict_json import parse_json, strict

DEFAULT_AGENT = "default"
"""What CopilotKit calls the agent of an application that has one."""
_OPTIONS = ("on_disconnect", "pacing")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was brought for one call that waited."""

    value: Any = None
    denied: bool = False
    failure: str = ""
    """Why a tool of the page could give no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """The new part of a posted run."""

    thread_id: str
    run_id: str
    declares_version: bool
    message: Object
    """The last one, if it is the user's."""
    resume: Mapping[str, Answer]
    """By the id of the interrupt, which is that of its call."""
    results: Mapping[str, Answer]
    """By the id of the call: the messages of a tool at the end, which may be old news."""
    options: Object


def read_run(body: object) -> RunInput:
    """Read a posted run.

    Raises:
        Refused: ``invalid-body``; so do all functions here, or ``invalid-json`` for what no one reads alike.
    """
    posted = read_object(body, "")
    messages = [read_object(m, "/messages/-") for m in _list(posted, "messages")]
    last = messages[-1] if messages else {}
    tools = list(takewhile(lambda message: message.get("role") == "tool", reversed(messages)))
    props = posted.get("forwardedProps")
    options = props if isinstance(props, dict) else {}
    return RunInput(
        thread_id=read_id(posted, "threadId", ""),
        run_id=read_id(posted, "runId", ""),
        declares_version=isinstance(posted.get("protocolVersion"), str),
        message=last if last.get("role") == "user" else {},
        resume=dict(map(_resumed, _list(posted, "resume"))),
        results={read_id(m, "toolCallId", "/messages/-"): _result(m) for m in tools},
        options={name: options[name] for name in _OPTIONS if name in options},
    )


def turn_request(run: RunInput, agent: str) -> TurnRequest:
    """Return the turn that the user's message asks for. Its key derives from the run's id."""
    if not run.message:
        raise refused("/messages", "must end with a message of the user, or with answers")
    message_id = read_id(run.message, "id", "/messages/-")
    named = {} if agent == DEFAULT_AGENT else {"agent": agent}
    body = {"input": list(_inputs(run.message.get("content"))), **named, **run.options}
    key = hashlib.sha256(run.run_id.encode("utf-8", "surrogatepass")).hexdigest()
    return replace(read_turn(strict(body), key), message_id=message_id)


def decision(answer: Answer, executor: str) -> str:
    """Return what an answer means for a call, as ``edge.core.log.Resolve`` keeps it.

    A call that the runtime runs waits for leave; any other one waits for its result.
    """
    if answer.denied:
        return read_decision({"approve": False})
    if answer.failure:
        return read_decision(strict({"error": answer.failure}))
    if executor != "runtime":
        return read_decision(strict({"result": answer.value}))
    said = answer.value if isinstance(answer.value, dict) else {}
    approved = said.get("approved")
    if not isinstance(approved, bool):
        raise refused("/resume/-/payload/approved", "must be true or false")
    return read_decision(strict(approval(approved, said.get("reason"))))


def _resumed(value: object) -> tuple[str, Answer]:
    entry = read_object(value, "/resume/-")
    if entry.get("status") not in ("resolved", "cancelled"):
        raise refused("/resume/-/status", "must be one of: resolved, cancelled")
    answer = Answer(entry.get("payload"), denied=entry["status"] == "cancelled")
    return read_id(entry, "interruptId", "/resume/-"), answer


def _result(message: Object) -> Answer:
    """Return what a tool of the page has said. Its content is text, and most often JSON.

    What no one reads alike is taken for plain text: a long number is an id, and must keep its digits.
    """
    error = message.get("error")
    if isinstance(error, str) and error.strip():
        return Answer(failure=error)
    content = message.get("content")
    if not isinstance(content, str):
        return Answer(content)
    try:
        return Answer(parse_json(content.encode("utf-8", "surrogatepass")))
    except Refused:
        return Answer(content)


def _inputs(content: object) -> Iterator[Object]:
    """Yield a user's content as parts of a turn's input, which refuses what it does not know."""
    if not isinstance(content, list):
        yield {"type": "text", "text": content}
        return
    for value in content:
        part = read_object(value, "/messages/-/content/-")
        if part.get("type") == "text":
            yield {"type": "text", "text": part.get("text")}
        else:
            yield _file(part)


def _file(part: Object) -> Object:
    """Return a file by its address; AG-UI before 1.0 had it in the part itself."""
    source = part.get("source")
    held = source if isinstance(source, dict) else {"value": part.get("url"), **part}
    if held.get("value") is None or held.get("type") == "data":
        raise refused("/messages/-/content/-", "must be text, or a file by its URL")
    media_type = held.get("mimeType") or "application/octet-stream"
    return file_part(held["value"], media_type, part.get("filename"))


def _list(members: Object, name: str) -> Sequence[object]:
    value = members.get(name, [])
    if not isinstance(value, list):
        raise refused(f"/{name}", "must be a list")
    return value
