"""The client library's types: they compile, refuse what is wrong, and name what is really there.

Knows nothing of what the names do. The compiler comes with the npm packages of tests/clients.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.support.node import find_node

pytestmark = pytest.mark.timeout(120)  # the compiler takes its time on a busy machine

LIBRARY = ROOT / "edge" / "static" / "unbroken"
COMPILER = ROOT / "tests" / "clients" / "node_modules" / "typescript" / "bin" / "tsc"
TYPES = (LIBRARY / "unbroken.d.ts").read_text("utf-8")
OPTIONS = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom",
]
NAMES = """
const library = await import(process.argv[1]);
const environment = { fetch: () => new Promise(() => {}) };
const session = library.open({ sessionId: "s", environment });
const members = [...Object.keys(session), ...Object.getOwnPropertyNames(Object.getPrototypeOf(session))];
console.log(JSON.stringify({ exports: Object.keys(library), session: members }));
process.exit();
"""


def run(*command: str | Path) -> str:
    ran = subprocess.run(
        [find_node(), *command], check=False, capture_output=True, text=True, timeout=110
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_page_in_typescript_compiles_and_its_mistakes_do_not() -> None:
    if not COMPILER.exists():
        pytest.skip(
            "NOT RUN: tests/clients/node_modules has no TypeScript; `make test` installs it"
        )
    run(COMPILER, *OPTIONS, Path(__file__).with_name("usage.ts"))


def test_the_types_name_what_the_library_exports_and_what_a_session_has() -> None:
    script = ["--input-type=module", "--eval", NAMES, (LIBRARY / "unbroken.js").as_uri()]
    there = json.loads(run(*script))
    exported = re.findall(r"^export (?:function|class|const) (\w+)", TYPES, re.MULTILINE)
    assert sorted(exported) == sorted(there["exports"])
    (session,) = re.findall(r"interface Session .*?\{(.*?)^\}", TYPES, re.MULTILINE | re.DOTALL)
    members = re.findall(r"^  (?:readonly )?(\w+)(?:\(|:)", session, re.MULTILINE)
    assert sorted(members) == sorted(set(there["session"]) - {"constructor"})
