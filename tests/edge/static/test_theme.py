"""The page's colours: whatever is text can be read, in both themes (WCAG 2.2, 1.4.3 and 1.4.11, level AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

THEME = (Path(__file__).parents[3] / "edge" / "static" / "theme.css").read_text()
TEXT, GRAPHIC = 4.5, 3.0
PAIRS = [
    *((ink, ground, TEXT) for ink in ("ink", "quiet") for ground in ("paper", "panel", "bubble")),
    *((ink, ground, TEXT) for ink in ("accent", "bad") for ground in ("paper", "panel")),
    ("on-accent", "accent", TEXT),
    *((dot, ground, GRAPHIC) for dot in ("good", "warn", "bad") for ground in ("paper", "panel")),
]


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", block))


LIGHT, DARK = (colours(block) for block in THEME.split("prefers-color-scheme: dark")[:2])


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour as WCAG defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("ink", "ground", "least"), PAIRS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_written_can_be_read(
    theme: dict[str, str], ink: str, ground: str, least: float
) -> None:
    brighter, darker = sorted((luminance(theme[ink]), luminance(theme[ground])), reverse=True)
    assert (brighter + 0.05) / (darker + 0.05) >= least
