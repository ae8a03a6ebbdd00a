"""What the AI SDK's client posts: the whole conversation, of which only the end is new.

Knows nothing of HTTP or sessions. A message of the user is the input of a turn; a message of the assistant
brings what was decided about calls that waited. Everything before is not even looked at: the log is the truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edge.core.event import compact_json
from edge.core.requests import TurnRequest
from edge.web.chat_shapes import Object, approval, file_part, read_id, read_object, refused
from edge.web.shapes import read_decision, read_turn
from edge.web.strict_json import strict

_OPTIONS = ("agent", "on_disconnect", "pacing")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The new part of a posted conversation."""

    chat_id: str
    from_user: bool
    message_id: str
    again: bool
    """The user wants another answer to a message that may have been answered."""
    parts: Sequence[Object]
    """Of the last message, as the client keeps them."""
    options: Object
    """Of the turn; a page adds them to the body."""


def read_chat(body: object) -> ChatRequest:
    """Read a posted conversation.

    Raises:
        Refused: ``invalid-body``; so do all functions here, or ``invalid-json`` for what no one reads alike.
    """
    chat = read_object(body, "")
    messages = chat.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refused("/messages", "must be a list that is not empty")
    last = read_object(messages[-1], "/messages/-")
    parts = last.get("parts")
    if not isinstance(parts, list):
        raise refused("/messages/-/parts", "must be a list")
    role = last.get("role")
    if role not in ("user", "assistant"):
        raise refused("/messages/-/role", "must be one of: user, assistant")
    return ChatRequest(
        chat_id=read_id(chat, "id", ""),
        from_user=role == "user",
        message_id=read_id(last, "id", "/messages/-"),
        again=chat.get("trigger") == "regenerate-message",
        parts=[read_object(part, "/messages/-/parts/-") for part in parts],
        options={name: chat[name] for name in _OPTIONS if chat.get(name) is not None},
    )


def turn_request(chat: ChatRequest, instead_of: str = "") -> TurnRequest:
    """Return the turn that a user's message asks for.

    Its key derives from the message, so that the same one never starts two turns, whoever sends it again.
    ``instead_of`` names the turn whose answer shall be replaced.
    """
    body = {"input": list(_inputs(chat.parts)), **chat.options}
    read = strict(body)
    identity = compact_json([chat.message_id, body["input"], instead_of])
    key = hashlib.sha256(identity.encode("ascii")).hexdigest()
    return replace(read_turn(read, key), message_id=chat.message_id)


def decisions(chat: ChatRequest, waiting: Sequence[str]) -> Mapping[str, str]:
    """Return what the message says of calls that wait: call id to decision."""
    found = {}
    for part in chat.parts:
        call_id = part.get("toolCallId")
        if isinstance(call_id, str) and call_id in waiting and (decision := _decision(part)):
            found[call_id] = read_decision(strict(decision))
    return found


def _decision(part: Object) -> Object | None:
    match part.get("state"):
        case "approval-responded":
            answer = part.get("approval")
            said = answer if isinstance(answer, dict) else {}
            return approval(said.get("approved"), said.get("reason"))
        case "output-available":
            return {"result": part.get("output")}
        case "output-error":
            return {"error": part.get("errorText")}
    return None


def _inputs(parts: Sequence[Object]) -> Iterator[Object]:
    """Yield a user's parts as a turn takes them; it refuses what it does not know."""
    for part in parts:
        kind = str(part.get("type"))
        if kind == "file":
            yield file_part(part.get("url"), part.get("mediaType"), part.get("filename"))
        elif kind.startswith("data-"):
            yield {"type": "data", "data_json": compact_json(strict(part.get("data")))}
        elif kind != "text" or part.get("text") != "" or len(parts) == 1:
            yield {"type": kind, "text": part.get("text")}
