"""A pytest plugin: finds and runs the official Firestore emulator.

The fixture ``emulator`` is the ``host:port`` of one emulator for the whole session; each test takes
a project id of its own from ``fresh_project``, which isolates it. Where no emulator is found the
tests that ask for it are skipped, and ``not_run_plugin`` says so.

Looked for in this order: ``FIRESTORE_EMULATOR_HOST`` (one that runs already),
``FIRESTORE_EMULATOR_JAR``, the Google Cloud SDK's folder, the Firebase CLI's cache.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import grpc
import pytest
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import BatchWriteRequest, Document, Write

from edge.journal.firestore import EMULATOR_METADATA

NOT_RUN = "the Firestore emulator was not found (set FIRESTORE_EMULATOR_HOST or _JAR)"

_SDK_JAR = Path(
    "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
)
_FIREBASE_CACHE = Path("~/.cache/firebase/emulators")
_MAIN_CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
# A JVM for tests: little memory, quick start.
_JVM_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.language=en")
_START_LIMIT_SECONDS = 40.0


class Emulator:
    """One emulator process, started directly: gcloud's wrapper leaves its JVM behind."""

    def __init__(self, jar: Path, log: Path) -> None:
        self._jar = jar
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, port: int = 0) -> None:
        """Start on a port, by default a free one, and wait until it answers and has written once."""
        for attempt in (1, 2):
            self.port = port or _free_port()
            if self._try_start():
                return
            # Between the choice of a port and its use, another process may have taken it.
            if attempt == 2 or "BindException" not in self._log.read_text(errors="replace"):
                pytest.fail(f"the Firestore emulator did not start; see {self._log}")

    def kill(self) -> None:
        """Kill it, as a crash would; what it held is gone."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=10)
        self._process = None

    def _try_start(self) -> bool:
        command = ["java", *_JVM_FLAGS, "-cp", str(self._jar), _MAIN_CLASS, "start"]
        command += ["--host=127.0.0.1", f"--port={self.port}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )
        deadline = monotonic() + _START_LIMIT_SECONDS
        while monotonic() < deadline:
            if _answers(self.host):
                _warm_up(self.host)
                return True
            try:
                self._process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        self.kill()
        return False


@pytest.fixture(scope="session")
def emulator_jar() -> Path:
    """The emulator's program, for tests that must kill one of their own."""
    jar = find_jar()
    if jar is None:
        pytest.skip(NOT_RUN)
    return jar


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the session's emulator listens."""
    running = os.environ.get("FIRESTORE_EMULATOR_HOST")
    if running:
        yield running
        return
    jar = find_jar()
    if jar is None:
        pytest.skip(NOT_RUN)
    started = Emulator(jar, tmp_path_factory.mktemp("firestore") / "emulator.log")
    try:
        started.start()
        yield started.host
    finally:
        started.kill()


def fresh_project() -> str:
    """Return a project id that no other test uses; the emulator makes projects on first use."""
    return f"t-{uuid.uuid4().hex[:12]}"


def find_jar() -> Path | None:
    """Return the emulator's program, if there is one and a Java to run it."""
    if shutil.which("java") is None:
        return None
    named = os.environ.get("FIRESTORE_EMULATOR_JAR")
    cached = sorted(_FIREBASE_CACHE.expanduser().glob("cloud-firestore-emulator-v*.jar"))
    candidates = [Path(named)] if named else [_SDK_JAR, *reversed(cached)]
    return next((jar for jar in candidates if jar.is_file()), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _warm_up(host: str) -> None:
    """Write one document: on a busy machine a new JVM's first write outlasts what an edge waits for one."""
    database = "projects/warm-up/databases/(default)"
    write = Write(update=Document(name=f"{database}/documents/warm/up"))
    with grpc.insecure_channel(host) as channel:
        FirestoreClient(transport=FirestoreGrpcTransport(channel=channel)).batch_write(
            BatchWriteRequest(database=database, writes=[write]),
            metadata=EMULATOR_METADATA,
            timeout=_START_LIMIT_SECONDS,
        )


def _answers(host: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/", timeout=2) as answer:
            return bool(answer.read().strip() == b"Ok")
    except (urllib.error.URLError, OSError):
        return False
