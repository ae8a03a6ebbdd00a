"""The modules of the lab's page, by node and by eye."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

STATIC = ROOT / "tests" / "lab" / "static"


@pytest.mark.parametrize("name", ["tally", "timeline"])
def test_the_pages_modules_do_what_they_say(name: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT RUN: no node on this machine to check the lab's modules with")
    script = Path(__file__).with_name(f"{name}.test.mjs")
    ran = subprocess.run(
        [node, "--test", str(script)], check=False, capture_output=True, text=True, timeout=50
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_page_never_makes_markup_of_text_and_asks_nobody_else() -> None:
    for path in STATIC.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_every_trouble_has_its_button() -> None:
    buttons = set(re.findall(r'data-trouble="(\w+)"', (STATIC / "lab.html").read_text()))

    assert buttons == {"cut", "hole", "kill", "pause", "store", "throttle"}
