"""The lock files pin everything by hash, name no index, and hold what the sources ask for."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.source import ROOT

FOLDER = ROOT / "requirements"
LOCKS = sorted(path.name for path in FOLDER.glob("*.txt"))


@dataclass(frozen=True, slots=True)
class Pin:
    """One locked release; a package may have several, each for other Python versions."""

    requirement: Requirement
    hash_count: int

    @property
    def version(self) -> str:
        """The exact version."""
        (specifier,) = self.requirement.specifier
        return specifier.version


def _lines(path: Path) -> list[str]:
    """Return the logical lines: comments dropped, continued lines joined."""
    kept = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    return [line for line in "\n".join(kept).replace("\\\n", " ").splitlines() if line.strip()]


def _pins(lock: str) -> list[Pin]:
    pins = []
    for line in _lines(FOLDER / lock):
        text, *hashes = re.split(r"\s+--hash=sha256:[0-9a-f]{64}", line)
        assert "--" not in text + "".join(hashes), f"an option in {lock}: {line}"
        pins.append(Pin(Requirement(text), len(hashes)))
    return pins


def _wanted() -> dict[str, list[str]]:
    """Return what each lock file was asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    product = project["dependencies"]
    openai = project["optional-dependencies"]["openai"]
    build = _lines(FOLDER / "build.in")
    return {
        "base.txt": product,
        "openai.txt": product + openai,
        "build.txt": build,
        "dev.txt": product + openai + build + _lines(FOLDER / "dev.in"),
        "deploy-check.txt": _lines(FOLDER / "deploy-check.in"),
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_every_release_is_pinned_by_its_hashes(lock: str) -> None:
    pins = _pins(lock)

    assert pins
    assert [
        str(pin.requirement)
        for pin in pins
        if pin.hash_count == 0 or [spec.operator for spec in pin.requirement.specifier] != ["=="]
    ] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_names_a_host_or_a_path(lock: str) -> None:
    text = (FOLDER / lock).read_text()

    assert re.findall(r"\S*://\S*|\S*@ \S*|file:\S*", text) == []


def test_every_lock_holds_what_was_asked_for() -> None:
    missing = []
    for lock, wanted in _wanted().items():
        pins = _pins(lock)
        for asked in map(Requirement, wanted):
            held = [pin for pin in pins if _normal(pin.requirement.name) == _normal(asked.name)]
            if not held or not all(asked.specifier.contains(pin.version) for pin in held):
                missing.append(f"{lock}: {asked}")

    assert missing == [], "run `make lock`"


def test_every_lock_is_made_from_a_source() -> None:
    assert set(_wanted()) == set(LOCKS)


def test_a_package_has_the_same_releases_in_every_lock() -> None:
    releases: dict[str, set[frozenset[str]]] = {}
    for lock in LOCKS:
        by_name: dict[str, set[str]] = {}
        for pin in _pins(lock):
            by_name.setdefault(_normal(pin.requirement.name), set()).add(pin.version)
        for name, versions in by_name.items():
            releases.setdefault(name, set()).add(frozenset(versions))

    assert {name: found for name, found in releases.items() if len(found) > 1} == {}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
