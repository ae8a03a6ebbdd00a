"""A page without a browser: a script of this folder under node, where the client library is a package.

Knows nothing of what the script does; it says lines of JSON.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.support.node import find_node

HERE = Path(__file__).parent


@asynccontextmanager
async def page(folder: Path, script: str, *arguments: str) -> AsyncIterator[AsyncIterator[Any]]:
    """Run the script in a folder of its own; yields what it says."""
    shutil.copy(HERE / script, folder)
    packages = folder / "node_modules"
    packages.mkdir()
    (packages / "unbroken").symlink_to(ROOT / "edge" / "static" / "unbroken")
    command = [find_node(), script, *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=pipe)
    assert process.stdout is not None
    try:
        yield (json.loads(line) async for line in process.stdout)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
