"""What the bodies of front-end kits have in common: objects, ids, files, and a person's yes or no.

Knows nothing of any one kit. Unlike ``edge.web.shapes`` it lets unknown members be, which are the kit's own
business, and tells the first mistake only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge.web.problems import FieldError, Refused

Object = Mapping[str, Any]

MAX_ID_CHARS = 255


def read_object(value: object, pointer: str) -> Object:
    """Return the object that stands at ``pointer``.

    Raises:
        Refused: ``invalid-body``; so does ``read_id``.
    """
    if not isinstance(value, dict):
        raise refused(pointer, "must be an object")
    return value


def read_id(members: Object, name: str, pointer: str) -> str:
    """Return an id, a member of the object at ``pointer``."""
    value = members.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS or "\0" in value:
        raise refused(f"{pointer}/{name}", f"must be a string of 1 to {MAX_ID_CHARS} characters")
    return value


def approval(approved: object, reason: object) -> Object:
    """Return a person's yes or no as ``edge.web.shapes.read_decision`` takes it: a yes has no reason."""
    return {"approve": approved} | ({"reason": reason} if reason and not approved else {})


def file_part(uri: object, media_type: object, name: object) -> Object:
    """Return a file as ``edge.web.shapes.read_turn`` takes it: kits send an empty name for none."""
    named = {"name": name} if name else {}
    return {"type": "file", "uri": uri, "media_type": media_type, **named}


def refused(pointer: str, detail: str) -> Refused:
    """Return the refusal of what stands at ``pointer``."""
    return Refused("invalid-body", errors=[FieldError(pointer, detail)])
