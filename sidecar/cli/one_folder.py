"""The program of the one-folder build, which brings its own Python.

There `sys.executable` is this program. It therefore also accepts the forms in which the sidecar starts Python
again: `-m MODULE`, `-c CODE` and the path of a script of the package.
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
"""Options of Python that hold here anyway: nothing but the build itself is on the import path."""
_PACKAGE = Path(sidecar.__file__).parent


def run() -> int:
    """Run the command line, or the Python code that the sidecar asks for; returns the exit code."""
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
    """Let programs that are started find their own libraries, not the build's."""
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        os.environ["LD_LIBRARY_PATH"] = before


if __name__ == "__main__":
    sys.exit(run())
