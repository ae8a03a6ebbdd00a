"""The configuration: what is wrong is told in one line that names the variable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from edge.config import (
    Config,
    ConfigError,
    FirestoreChoice,
    MemoryChoice,
    SqliteChoice,
    TokenIssuer,
)

FIRESTORE = {"EDGE_JOURNAL": "firestore:", "GOOGLE_CLOUD_PROJECT": "demo"}
KEYS = "EDGE_AUTH_JWKS_URL"
TOKENS = {
    "EDGE_AUTH_ISSUER": "https://issuer.example",
    "EDGE_AUTH_AUDIENCE": "app",
    KEYS: "https://issuer.example/keys?v=1",
}


def test_nothing_set_runs_on_one_machine() -> None:
    config = Config.from_environ({})
    assert config == Config()
    assert (config.host, config.port) == ("127.0.0.1", 8080)
    assert config.journal == SqliteChoice(Path("var/unbroken.sqlite3"))


def test_every_variable_reaches_its_field() -> None:
    config = Config.from_environ(
        {
            "PORT": "9000",
            "HOST": "::1",
            "EDGE_JOURNAL": "memory:",
            "EDGE_RUNTIME_TARGET": "localhost:6000",
            "EDGE_CHECKPOINT_MODE": "suspend",
            "EDGE_MAX_STREAMS": "7",
            "EDGE_TTL_SECONDS": "5",
            "EDGE_HOLD_TIMEOUT_SECONDS": "1.5",
            "EDGE_PING_SECONDS": "0.5",
            "EDGE_STALL_SECONDS": "2",
            "EDGE_STREAM_LIFE_SECONDS": "60",
            "EDGE_DISCONNECT_GRACE_SECONDS": "3",
            "EDGE_RUNTIME_IDLE_SECONDS": "3",
            "EDGE_START_WAIT_SECONDS": "4",
            "EDGE_DRAIN_SECONDS": "1",
            "PATH": "/bin",
        }
    )
    assert config == Config(
        host="::1",
        port=9000,
        journal=MemoryChoice(),
        runtime_target="localhost:6000",
        checkpoint_mode="suspend",
        max_streams=7,
        ttl_seconds=5,
        hold_timeout_seconds=1.5,
        ping_seconds=0.5,
        stall_seconds=2,
        stream_life_seconds=60,
        disconnect_grace_seconds=3,
        runtime_idle_seconds=3,
        start_wait_seconds=4,
        drain_seconds=1,
    )


def test_a_variable_that_is_empty_counts_as_absent() -> None:
    assert Config.from_environ({"PORT": "", "EDGE_JOURNAL": "  "}) == Config()


def test_firestore_takes_its_project_database_and_emulator() -> None:
    environ = {**FIRESTORE, "FIRESTORE_DATABASE": "d", "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}
    assert Config.from_environ(environ).journal == FirestoreChoice("demo", "d", "127.0.0.1:1")
    assert Config.from_environ(FIRESTORE).journal == FirestoreChoice("demo", "(default)", None)


@pytest.mark.parametrize("url", [TOKENS[KEYS], "http://127.0.0.1:9/keys", "http://[::1]:9"])
def test_an_edge_is_told_whose_tokens_to_ask_for(url: str) -> None:
    issuer = TokenIssuer("https://issuer.example", "app", url)
    assert Config.from_environ({**TOKENS, KEYS: url}).tokens == issuer
    assert Config.from_environ(FIRESTORE).tokens is None


@pytest.mark.parametrize("name", TOKENS)
def test_half_an_issuer_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Config.from_environ({**TOKENS, name: ""})


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({**TOKENS, KEYS: "http://issuer.example/keys"}, KEYS),
        ({**TOKENS, KEYS: "http://localhost.example/keys"}, KEYS),
        ({**TOKENS, KEYS: "http://localhost@issuer.example/keys"}, KEYS),
        ({**TOKENS, KEYS: "file:///keys"}, KEYS),
        ({**TOKENS, KEYS: "https:///keys"}, KEYS),
        ({**TOKENS, KEYS: "issuer.example"}, KEYS),
        ({"PORT": "http"}, "PORT"),
        ({"PORT": "-1"}, "PORT"),
        ({"PORT": "65536"}, "PORT"),
        ({"PORT": "٨"}, "PORT"),
        ({"EDGE_TTL_SECONDS": "nan"}, "EDGE_TTL_SECONDS"),
        ({"EDGE_TTL_SECONDS": "1e3"}, "EDGE_TTL_SECONDS"),
        ({"EDGE_TTL_SECONDS": "3"}, "EDGE_TTL_SECONDS"),
        ({"EDGE_PING_SECONDS": "0"}, "EDGE_PING_SECONDS"),
        ({"EDGE_MAX_STREAMS": "0"}, "EDGE_MAX_STREAMS"),
        ({"EDGE_CHECKPOINT_MODE": "none"}, "EDGE_CHECKPOINT_MODE"),
        ({"EDGE_RUNTIME_TARGET": "localhost"}, "EDGE_RUNTIME_TARGET"),
        ({"EDGE_JOURNAL": "redis:"}, "EDGE_JOURNAL"),
        ({"EDGE_JOURNAL": "sqlite:"}, "EDGE_JOURNAL"),
        ({"EDGE_JOURNAL": "memory"}, "EDGE_JOURNAL"),
        ({"EDGE_JOURNAL": "firestore:"}, "GOOGLE_CLOUD_PROJECT"),
        ({"EDGE_ENV": "staging"}, "EDGE_ENV"),
        ({"EDGE_PING_SECOND": "5"}, "EDGE_PING_SECOND"),
        ({"EDGE_HOLD_TIMEOUT_SECONDS": "12"}, "EDGE_HOLD_TIMEOUT_SECONDS"),
        ({"EDGE_TTL_SECONDS": "13"}, "EDGE_HOLD_TIMEOUT_SECONDS"),
        ({"EDGE_DRAIN_SECONDS": "8"}, "EDGE_DRAIN_SECONDS"),
    ],
)
def test_a_wrong_value_is_told_in_one_line_that_names_the_variable(
    environ: Mapping[str, str], variable: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_environ(environ)
    message = str(caught.value)
    assert message.startswith(f"{variable}: ")
    assert "\n" not in message


def test_an_error_does_not_repeat_a_value_that_may_be_a_secret() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_environ({"EDGE_RUNTIME_TARGET": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("stage", [{"EDGE_ENV": "production"}, {"K_SERVICE": "edge"}])
@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({**FIRESTORE, "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1"}, "FIRESTORE_EMULATOR_HOST"),
        ({"FIREBASE_AUTH_EMULATOR_HOST": "127.0.0.1:1"}, "FIREBASE_AUTH_EMULATOR_HOST"),
        ({"EDGE_JOURNAL": "memory:"}, "EDGE_JOURNAL"),
        ({**FIRESTORE, **TOKENS, KEYS: "http://127.0.0.1:9/keys"}, KEYS),
    ],
)
def test_production_refuses_what_only_a_developer_may_use(
    stage: Mapping[str, str], environ: Mapping[str, str], variable: str
) -> None:
    assert Config.from_environ({**FIRESTORE, **stage}).production
    with pytest.raises(ConfigError, match=variable):
        Config.from_environ({**environ, **stage})


def test_cloud_run_cannot_be_told_that_it_is_a_developers_machine() -> None:
    with pytest.raises(ConfigError, match="EDGE_ENV"):
        Config.from_environ({"K_SERVICE": "edge", "EDGE_ENV": "development"})
