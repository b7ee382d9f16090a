"""Discovers engines without importing them.

The first source that has an id wins: built-in engines, folders linked for development, folders of
`plugins.load.paths`, installed packages with an entry point in the group `context_sidecar.engines`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from sidecar.private_files import write

if TYPE_CHECKING:
    from sidecar.engine.interpreter import Interpreter

GROUP = "context_sidecar.engines"
ENV_LOAD = "SIDECAR_LOAD_ENGINES"
"""If set, only the external engines with these comma-separated ids may be loaded."""
BUILT_IN = {
    "legacy": "sidecar.engines.legacy:LegacyEngine",
    "full": "sidecar.engines.full:FullEngine",
    "terse": "sidecar.engines.terse:TerseEngine",
    "lossless": "sidecar.engines.lossless:LosslessEngine",
    "default": "sidecar.engines.default:DefaultEngine",
    "recall": "sidecar.engines.full:RecallEngine",
    "sliding-window": "sidecar.engines.sliding_window:SlidingWindowEngine",
}
"""In the form of entry points; selecting a built-in engine thus reads no package metadata."""

Origin = Literal["built-in", "linked", "path", "package"]


class Found(NamedTuple):
    """An engine that was found, and where."""

    id: str
    target: str
    """`module:Class`."""
    origin: Origin
    source: str = ""
    """The package and its version, or the folder."""
    places: tuple[str, ...] = ()
    """Folders to add to Python's import path."""
    problem: str | None = None
    """Why it cannot be loaded, and what to do."""

    @property
    def is_built_in(self) -> bool:
        """True for an engine that ships with the sidecar."""
        return self.origin == "built-in"

    def described(self) -> str:
        """Its origin, for people."""
        match self.origin:
            case "built-in":
                return "built in"
            case "package":
                return f"package {self.source}"
            case "linked":
                return f"linked from {self.source}"
            case "path":
                return f"from plugins.load.paths: {self.source}"


class EngineSources:
    """The places where a sidecar looks for engines."""

    def __init__(
        self, *, links: Path | None = None, paths: Sequence[str] = (), python: str | None = None
    ) -> None:
        """`links` is the file written by `engines link`; `paths` and `python` come from the configuration."""
        self._links = links
        self._paths = paths
        self._python = python

    @cached_property
    def interpreter(self) -> Interpreter:
        """The Python that runs external engines."""
        from sidecar.engine.interpreter import Interpreter

        return Interpreter(self._python)

    def all(self) -> Iterator[Found]:
        """All engines, built-in ones first; imports none of them."""
        seen: set[str] = set()
        for found in self._everything():
            if found.id not in seen and _allowed(found):
                seen.add(found.id)
                yield found

    def named(self, engine_id: str) -> Found | None:
        """The engine with that id, or `None`; finding a built-in one needs no search."""
        if engine_id in BUILT_IN:
            return Found(engine_id, BUILT_IN[engine_id], "built-in")
        return next((found for found in self.all() if found.id == engine_id), None)

    def _everything(self) -> Iterator[Found]:
        for engine_id, target in BUILT_IN.items():
            yield Found(engine_id, target, "built-in")
        for folder in read_links(self._links) if self._links else ():
            yield from _in_folder(Path(folder), "linked")
        for folder in self._paths:
            yield from _in_folder(Path(folder).expanduser(), "path")
        yield from installed() if self.interpreter.is_this else self._elsewhere()

    def _elsewhere(self) -> Iterator[Found]:
        """The engines installed in another Python; empty if it cannot be queried."""
        from sidecar.engine.interpreter import NoPython

        with suppress(NoPython):
            for engine_id, target, source in self.interpreter.engines:
                yield Found(engine_id, target, "package", source)


def installed() -> Iterator[Found]:
    """The engines registered by installed packages."""
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name not in BUILT_IN:
            dist = point.dist
            source = f"{dist.name} {dist.version}" if dist else "of unknown name"
            yield Found(point.name, point.value, "package", source)


def _in_folder(folder: Path, origin: Origin) -> Iterator[Found]:
    from sidecar.engine.declared import NothingDeclared, declared_engines, import_folders

    try:
        engines = declared_engines(folder)
    except NothingDeclared as error:
        yield Found(folder.name, "", origin, str(folder), problem=str(error))
        return
    places = tuple(str(place) for place in import_folders(folder))
    for engine_id, target in engines.items():
        yield Found(engine_id, target, origin, str(folder), places)


def _allowed(found: Found) -> bool:
    """Whether the environment allows loading the engine."""
    only = os.environ.get(ENV_LOAD)
    return only is None or found.is_built_in or found.id in {name.strip() for name in only.split(",")}


LINKS_FILE = "linked-engines.json"


class LinksUnreadable(Exception):
    """Raised when the links file was not written by `engines link`, or cannot be read."""


class _Links(msgspec.Struct):
    folders: list[str] = []


def read_links(file: Path) -> list[str]:
    """The linked folders, in the order they were linked; empty if the file is unreadable."""
    try:
        return _read(file)
    except LinksUnreadable:
        return []


def add_link(file: Path, folder: Path) -> bool:
    """Link a folder. Returns false if it was already linked.

    Raises:
        LinksUnreadable: the links file is unreadable.
    """
    folders = _read(file)
    if str(folder) in folders:
        return False
    _write(file, [*folders, str(folder)])
    return True


def remove_link(file: Path, folder: str) -> bool:
    """Unlink a folder. Returns false if it was not linked.

    Raises:
        LinksUnreadable: the links file is unreadable.
    """
    folders = _read(file)
    if folder not in folders:
        return False
    _write(file, [known for known in folders if known != folder])
    return True


def _read(file: Path) -> list[str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Links).folders
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise LinksUnreadable(f"{file} cannot be read ({error}); repair or remove it") from error


def _write(file: Path, folders: Sequence[str]) -> None:
    write(file, msgspec.json.format(msgspec.json.encode(_Links(list(folders))), indent=2) + b"\n")
