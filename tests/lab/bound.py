"""Runs a module as a process that dies with the one that started it: ``python -m tests.lab.bound PARENT MODULE``.

Knows nothing of the module. Only Linux has a signal for a parent's death, and it comes even after ``kill -9``; elsewhere a
lab that is killed so leaves its processes behind.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1  # of Linux's <sys/prctl.h>


def main() -> None:
    """Bind this process to its parent, and become the module."""
    parent, module = int(sys.argv[1]), sys.argv[2]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we were bound to it
            raise SystemExit(1)
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
