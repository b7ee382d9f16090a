"""The program of the one-folder build, which includes its own Python.

In that build `sys.executable` is this program, so it must also accept the arguments with which the sidecar
starts Python: `-m MODULE`, `-c CODE` and the path of a script in the package.
"""

from __future__ import annotations

import os
import runpy
import sys
from itertools import dropwhile
from pathlib import Path

import sidecar
from sidecar.cli.main import main

_OPTIONS = ("-I", "-P", "-S")
"""Python options without effect here: only the build itself is on the import path."""
_PACKAGE = Path(sidecar.__file__).parent


def run() -> int:
    """Run the command line, or the Python code in the arguments; returns the exit code."""
    _restore_environment()
    arguments = list(dropwhile(_OPTIONS.__contains__, sys.argv[1:]))
    match arguments:
        case ["-m", module, *rest]:
            sys.argv[1:] = rest
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv[:] = ["-c", *rest]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case [script, *_] if script.endswith(".py") and Path(script).is_relative_to(_PACKAGE):
            sys.argv[:] = arguments
            runpy.run_path(script, run_name="__main__")
        case _:
            return main()
    return 0


def _restore_environment() -> None:
    """Restore `LD_LIBRARY_PATH`, so that child processes load their own libraries, not the build's."""
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        os.environ["LD_LIBRARY_PATH"] = before


if __name__ == "__main__":
    sys.exit(run())
