"""The Python that runs external engines: this one, the one set by `engines.python`, or one found on PATH.

The Python of a one-folder build cannot run them, because it has only the packages of the build. Such a build
uses `python3` from PATH, which is that of an active virtual environment. It must have this package in the
same version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from sidecar import __version__
from sidecar.import_path import absolute_path
from sidecar.origin import ONE_FOLDER, install_command

_LIMIT_S = 20.0
_Engine = tuple[str, str, str]
_Answer = tuple[str, list[_Engine]]
_QUERY = """
import json, sidecar
from sidecar.engine.sources import installed
print(json.dumps([sidecar.__version__, [[found.id, found.target, found.source] for found in installed()]]))
"""


class NoPython(Exception):
    """Raised when no Python can run external engines; the text says what to do."""


class Interpreter:
    """Locates that Python, and queries its installed engines once."""

    def __init__(self, named: str | None, environ: Mapping[str, str] = os.environ) -> None:
        """`named` is the setting `engines.python`."""
        self._named = named
        self._environ = environ
        self.is_this = named is None and not ONE_FOLDER

    @property
    def path(self) -> str:
        """Its absolute path, after checking that it has this package.

        Raises:
            NoPython: there is none, or it cannot run engines.
        """
        return sys.executable if self.is_this else self._answer()[0]

    def described(self) -> str:
        """A description for people."""
        if self.is_this:
            return "the sidecar's own Python"
        if isinstance(self._queried, NoPython):
            return "no Python"
        return f"{self.path}, {'set by engines.python' if self._named else 'found on PATH'}"

    def complaint(self) -> str:
        """Why no Python could be queried for engines, to append when an engine is not found; else empty."""
        try:
            assert self.path
        except NoPython as error:
            return str(error)
        return ""

    @property
    def engines(self) -> list[_Engine]:
        """Id, target and package of the engines installed there.

        Raises:
            NoPython: there is none, or it cannot run engines.
        """
        return self._answer()[1]

    def _answer(self) -> _Answer:
        if isinstance(self._queried, NoPython):
            raise self._queried
        return self._queried

    @cached_property
    def _queried(self) -> _Answer | NoPython:
        try:
            return self._query()
        except NoPython as error:
            return error

    def _query(self) -> _Answer:
        path = self._found()
        try:
            done = subprocess.run(
                [path, "-P", "-c", _QUERY],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**self._environ, **absolute_path(self._environ)},
                timeout=_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoPython(f"{path} cannot be run: {error}; {_NAME_ONE}") from None
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
            raise NoPython(
                f"{path} cannot run engines: {last[:200]}. It needs Python 3.11 or newer and this package; "
                f"install it there with {install_command(python=path)}, or name another one in engines.python"
            )
        version, engines = msgspec.json.decode(done.stdout, type=tuple[str, list[_Engine]])
        if version != __version__:
            raise NoPython(
                f"{path} has context-sidecar {version}, but this is {__version__}: install the same version "
                f"there with {install_command(python=path)}"
            )
        return path, engines

    def _found(self) -> str:
        if self._named:
            path = shutil.which(Path(self._named).expanduser())
            if path is None or not Path(path).is_absolute():
                raise NoPython(
                    f"engines.python names {self._named}, which is not a program: give its full path"
                )
            return path
        folders = self._environ.get("PATH", "").split(os.pathsep)
        absolute = os.pathsep.join(each for each in folders if Path(each).is_absolute())
        path = shutil.which("python3", path=absolute) or shutil.which("python", path=absolute)
        if path is None:
            raise NoPython(
                f"this build needs a separate Python to run engines, and PATH has no python3; {_NAME_ONE}"
            )
        return path


_NAME_ONE = "set engines.python in the configuration file to a Python that has this package and the engine"
