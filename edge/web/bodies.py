"""Reads a request's body: the right type, no more than it may have, in 10 seconds, as JSON.

Knows nothing of what the JSON means; ``edge.web.shapes`` does. The guard bounds the size while the
body arrives, Quart the time.
"""

from __future__ import annotations

import json
from typing import cast

from quart import Request

from edge.web.guard import INCOMING, Incoming
from edge.web.problems import Refused
from edge.web.strict_json import parse_json

READ_TIMEOUT_SECONDS = 10


async def read_json(request: Request) -> object:
    """Return the body as parsed JSON.

    Raises:
        Refused: ``unsupported-media-type``, ``body-too-large`` or ``invalid-json``.
        werkzeug.exceptions.HTTPException: 408, raised by Quart.
    """
    check_media_type(request)
    return parse_json(await _read(request))


async def read_chat_json(request: Request) -> object:
    """Return the body of a front-end kit as parsed JSON, without asking for more than JSON.

    It repeats what tools and models have said, and that need not be strict; what of it is new is checked by
    whoever uses it. Raises as ``read_json``.
    """
    check_media_type(request)
    try:
        return json.loads(await _read(request))
    except (ValueError, RecursionError):
        raise Refused("invalid-json") from None


async def read_json_if_any(request: Request) -> object:
    """Return the body as parsed JSON, ``{}`` when there is none. Raises as ``read_json``."""
    return await read_json(request) if await _read(request) else {}


async def _read(request: Request) -> bytes:
    incoming = cast("dict[str, Incoming]", request.scope)[INCOMING]
    if (request.content_length or 0) > incoming.limit_bytes:
        raise Refused("body-too-large")  # before it is read
    body = await request.get_data(as_text=False, cache=True, parse_form_data=False)
    if incoming.too_large:
        raise Refused("body-too-large")
    return body


def check_media_type(request: Request) -> None:
    """Accept plain JSON in UTF-8 only. Another type would also be sent without a CORS preflight."""
    charset = request.mimetype_params.get("charset", "utf-8")
    plain = request.headers.get("Content-Encoding", "identity").lower() == "identity"
    if request.mimetype != "application/json" or charset.lower() != "utf-8" or not plain:
        raise Refused("unsupported-media-type")
