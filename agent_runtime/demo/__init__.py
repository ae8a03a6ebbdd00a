"""Small real agents that need no key and no network; none pretends to be a model.

``assistant`` answers commands by rules, ``echo`` repeats, ``script`` does what its input lists.
This module is their composition root: it alone reads the environment.
"""

from __future__ import annotations

import os

from agent_runtime.demo.assistant import make_assistant
from agent_runtime.demo.echo import make_echo
from agent_runtime.demo.script import make_script
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.demo.toolbox import make_toolbox

_SETTINGS = DemoSettings.from_environment(os.environ)
_TOOLS = make_toolbox(_SETTINGS)

assistant = make_assistant(_SETTINGS, _TOOLS)
echo = make_echo(_SETTINGS)
script = make_script(_SETTINGS, _TOOLS)

__all__ = ["assistant", "echo", "script"]
