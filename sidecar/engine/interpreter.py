"""The Python that runs engines from outside: this one, the one of `engines.python`, or one that is found.

A one-folder build cannot run them in its own Python, which has no packages but those of the build. There
`python3` of PATH is taken, in an active virtual environment that one's. It must have this package too, in
the same version.
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
_ASK = """
import json, sidecar
from sidecar.engine.sources import installed
print(json.dumps([sidecar.__version__, [[found.id, found.target, found.source] for found in installed()]]))
"""


class NoPython(Exception):
    """Raised where no Python can run engines from outside; the text says what to do."""


class Interpreter:
    """Finds that Python, and asks it once which engines are installed there."""

    def __init__(self, named: str | None, environ: Mapping[str, str] = os.environ) -> None:
        """`named` is the setting `engines.python`."""
        self._named = named
        self._environ = environ
        self.is_this = named is None and not ONE_FOLDER

    @property
    def path(self) -> str:
        """Its absolute path, once it has been seen to have this package.

        Raises:
            NoPython: there is none, or it lacks the package.
        """
        return sys.executable if self.is_this else self._answer()[0]

    def described(self) -> str:
        """Which one it is, for people."""
        if self.is_this:
            return "the sidecar's own Python"
        if isinstance(self._asked, NoPython):
            return "no Python"
        return f"{self.path}, {'as engines.python says' if self._named else 'which was found'}"

    def complaint(self) -> str:
        """What is to be added where an engine was not found, because no Python could be asked for it."""
        try:
            assert self.path
        except NoPython as error:
            return str(error)
        return ""

    @property
    def engines(self) -> list[_Engine]:
        """Id, target and package of the engines that are installed there.

        Raises:
            NoPython: there is none, or it lacks the package.
        """
        return self._answer()[1]

    def _answer(self) -> _Answer:
        if isinstance(self._asked, NoPython):
            raise self._asked
        return self._asked

    @cached_property
    def _asked(self) -> _Answer | NoPython:
        try:
            return self._ask()
        except NoPython as error:
            return error

    def _ask(self) -> _Answer:
        path = self._found()
        try:
            done = subprocess.run(
                [path, "-P", "-c", _ASK],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**self._environ, **absolute_path(self._environ)},
                timeout=_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoPython(f"{path} does not run: {error}; {_NAME_ONE}") from None
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
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
                    f"engines.python names {self._named}, which is no program: write its whole path"
                )
            return path
        folders = self._environ.get("PATH", "").split(os.pathsep)
        absolute = os.pathsep.join(each for each in folders if Path(each).is_absolute())
        path = shutil.which("python3", path=absolute) or shutil.which("python", path=absolute)
        if path is None:
            raise NoPython(
                f"this build cannot run engines from outside by itself, and there is no python3; {_NAME_ONE}"
            )
        return path


_NAME_ONE = "name a Python that has this package and the engine in engines.python of the configuration file"
