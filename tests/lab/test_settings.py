"""Where the lab refuses to start, and what can be set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.settings import Settings, SettingsError
from tests.support.edge_process import failed_start


def test_the_defaults_are_the_slow_tool_behind_the_impatient_proxy() -> None:
    settings = Settings.from_environ({})

    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert (settings.tool_seconds, settings.idle_seconds) == (25.0, 15.0)


@pytest.mark.parametrize(
    "environ",
    [{"K_SERVICE": "unbroken"}, {"EDGE_ENV": "production"}, {"AGENT_RUNTIME_ENV": "production"}],
)
def test_production_refuses_the_lab(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="production refuses it"):
        Settings.from_environ(environ)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "lab.example"])
def test_nobody_else_can_be_let_in(host: str) -> None:
    with pytest.raises(SettingsError, match="HOST: the lab listens only on 127"):
        Settings.from_environ({"HOST": host})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("LAB_TOOL_SECONDS", "0"),
        ("LAB_IDLE_SECONDS", "601"),
        ("LAB_WORD_SECONDS", "soon"),
    ],
)
def test_a_wrong_setting_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: must be"):
        Settings.from_environ({name: text})


async def test_the_process_says_in_one_line_why_it_does_not_start(tmp_path: Path) -> None:
    code, said = await failed_start("tests.lab", tmp_path, EDGE_ENV="production")

    assert (code, said) == (2, "lab: the lab kills and cuts on demand, so production refuses it\n")
