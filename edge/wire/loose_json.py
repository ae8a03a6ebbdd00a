"""JSON text that an agent wrote, made part of a JSON document of ours.

Knows nothing of events. The journal keeps such text as it came, so that every digit survives; formats of other
makers carry the value itself, and their readers take neither NaN nor infinity, nor nesting without end.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_LEVELS = 64


def parse_loosely(text: str) -> Any:
    """Return what the text means, and the text itself where it is no JSON that every reader takes.

    A number beyond a double's range becomes the text of its digits.
    """
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if _is_deeper(value, MAX_LEVELS) else value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in inner)


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits
