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
from edge.web.problems import FieldError, Refused
from edge.web.shapes import read_decision, read_turn
from edge.web.strict_json import parse_json, strict

_Object = Mapping[str, Any]

MAX_ID_CHARS = 255
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
    message: _Object
    """The last one, if it is the user's."""
    resume: Mapping[str, Answer]
    """By the id of the interrupt, which is that of its call."""
    results: Mapping[str, Answer]
    """By the id of the call: the messages of a tool at the end, which may be old news."""
    options: _Object


def read_run(body: object) -> RunInput:
    """Read a posted run.

    Raises:
        Refused: ``invalid-body``; so do all functions here, or ``invalid-json`` for what no one reads alike.
    """
    posted = _object(body, "")
    messages = [_object(m, "/messages/-") for m in _list(posted, "messages")]
    last = messages[-1] if messages else {}
    tools = list(takewhile(lambda message: message.get("role") == "tool", reversed(messages)))
    props = posted.get("forwardedProps")
    options = props if isinstance(props, dict) else {}
    return RunInput(
        thread_id=_text(posted, "threadId", ""),
        run_id=_text(posted, "runId", ""),
        declares_version=isinstance(posted.get("protocolVersion"), str),
        message=last if last.get("role") == "user" else {},
        resume=dict(map(_resumed, _list(posted, "resume"))),
        results={_text(m, "toolCallId", "/messages/-"): _result(m) for m in tools},
        options={name: options[name] for name in _OPTIONS if name in options},
    )


def turn_request(run: RunInput, agent: str) -> TurnRequest:
    """Return the turn that the user's message asks for. Its key derives from the run's id."""
    if not run.message:
        raise _refused("/messages", "must end with a message of the user, or with answers")
    message_id = _text(run.message, "id", "/messages/-")
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
    approval = answer.value if isinstance(answer.value, dict) else {}
    if not isinstance(approval.get("approved"), bool):
        raise _refused("/resume/-/payload/approved", "must be true or false")
    reason = {} if approval["approved"] else _named(approval, "reason")
    return read_decision(strict({"approve": approval["approved"], **reason}))


def _resumed(value: object) -> tuple[str, Answer]:
    entry = _object(value, "/resume/-")
    if entry.get("status") not in ("resolved", "cancelled"):
        raise _refused("/resume/-/status", "must be one of: resolved, cancelled")
    answer = Answer(entry.get("payload"), denied=entry["status"] == "cancelled")
    return _text(entry, "interruptId", "/resume/-"), answer


def _result(message: _Object) -> Answer:
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


def _inputs(content: object) -> Iterator[_Object]:
    """Yield a user's content as parts of a turn's input, which refuses what it does not know."""
    if not isinstance(content, list):
        yield {"type": "text", "text": content}
        return
    for value in content:
        part = _object(value, "/messages/-/content/-")
        if part.get("type") == "text":
            yield {"type": "text", "text": part.get("text")}
        else:
            yield _file(part)


def _file(part: _Object) -> _Object:
    """Return a file by its address; AG-UI before 1.0 had it in the part itself."""
    source = part.get("source")
    held = source if isinstance(source, dict) else {"value": part.get("url"), **part}
    if held.get("value") is None or held.get("type") == "data":
        raise _refused("/messages/-/content/-", "must be text, or a file by its URL")
    media_type = held.get("mimeType") or "application/octet-stream"
    named = {"name": part["filename"]} if part.get("filename") else {}
    return {"type": "file", "uri": held["value"], "media_type": media_type, **named}


def _named(members: _Object, name: str) -> _Object:
    return {name: members[name]} if members.get(name) else {}


def _list(members: _Object, name: str) -> Sequence[object]:
    value = members.get(name, [])
    if not isinstance(value, list):
        raise _refused(f"/{name}", "must be a list")
    return value


def _object(value: object, pointer: str) -> _Object:
    if not isinstance(value, dict):
        raise _refused(pointer, "must be an object")
    return value


def _text(members: _Object, name: str, pointer: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS or "\0" in value:
        raise _refused(f"{pointer}/{name}", f"must be a string of 1 to {MAX_ID_CHARS} characters")
    return value


def _refused(pointer: str, detail: str) -> Refused:
    return Refused("invalid-body", errors=[FieldError(pointer, detail)])
