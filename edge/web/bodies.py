"""Reads a request's body: the right type, no more than 64 KiB, in 10 seconds, strict JSON.

Knows nothing of what the JSON means; ``edge.web.shapes`` does. Size and time are enforced by Quart
while the body arrives, chunk by chunk, from these two limits.
"""

from __future__ import annotations

from quart import Request

from edge.web.problems import Refused
from edge.web.strict_json import parse_json

MAX_BODY_BYTES = 64 * 1024
READ_TIMEOUT_SECONDS = 10


async def read_json(request: Request) -> object:
    """Return the body as parsed JSON.

    Raises:
        Refused: ``unsupported-media-type`` or ``invalid-json``.
        werkzeug.exceptions.HTTPException: 413 or 408, raised by Quart.
    """
    check_media_type(request)
    return parse_json(await request.get_data(as_text=False, cache=False, parse_form_data=False))


async def read_json_if_any(request: Request) -> object:
    """Return the body as parsed JSON, ``{}`` when there is none. Raises as ``read_json``."""
    body = await request.get_data()
    return await read_json(request) if body else {}


def check_media_type(request: Request) -> None:
    """Accept plain JSON in UTF-8 only. Another type would also be sent without a CORS preflight."""
    charset = request.mimetype_params.get("charset", "utf-8")
    plain = request.headers.get("Content-Encoding", "identity").lower() == "identity"
    if request.mimetype != "application/json" or charset.lower() != "utf-8" or not plain:
        raise Refused("unsupported-media-type")
