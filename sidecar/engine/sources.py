"""Finds the engines that there are, without importing any of them.

Four sources, the first that knows an id wins: built in, linked for development, folders of
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
"""Ids, parted by commas, of the only engines from outside that may be loaded."""
BUILT_IN = {
    "legacy": "sidecar.engines.legacy:LegacyEngine",
    "full": "sidecar.engines.full:FullEngine",
    "terse": "sidecar.engines.terse:TerseEngine",
    "lossless": "sidecar.engines.lossless:LosslessEngine",
    "default": "sidecar.engines.default:DefaultEngine",
    "recall": "sidecar.engines.recall:RecallEngine",
    "sliding-window": "sidecar.engines.sliding_window:SlidingWindowEngine",
}
"""Named as entry points are, so that selecting one does not have to read the metadata of every package."""

Origin = Literal["built-in", "linked", "path", "package"]


class Found(NamedTuple):
    """Where an engine comes from."""

    id: str
    target: str
    """`module:Class`."""
    origin: Origin
    source: str = ""
    """The package, with its version, or the folder that brings it."""
    places: tuple[str, ...] = ()
    """Folders that Python has to look into for the module."""
    problem: str | None = None
    """Why nothing can be loaded from there, and what to do."""

    @property
    def is_built_in(self) -> bool:
        """True for engines that come with the sidecar."""
        return self.origin == "built-in"

    def described(self) -> str:
        """Where it comes from, for people."""
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
    """Where one sidecar looks for engines."""

    def __init__(
        self, *, links: Path | None = None, paths: Sequence[str] = (), python: str | None = None
    ) -> None:
        """`links` is the file that `engines link` keeps, `paths` and `python` are of the configuration."""
        self._links = links
        self._paths = paths
        self._python = python

    @cached_property
    def interpreter(self) -> Interpreter:
        """The Python that runs engines from outside."""
        from sidecar.engine.interpreter import Interpreter

        return Interpreter(self._python)

    def all(self) -> Iterator[Found]:
        """Every engine, the built-in ones first; nothing is imported."""
        seen: set[str] = set()
        for found in self._everything():
            if found.id not in seen and _allowed(found):
                seen.add(found.id)
                yield found

    def named(self, engine_id: str) -> Found | None:
        """The engine of that id; a built-in one is found without looking anywhere."""
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
        """The engines that are installed for another Python; none where that cannot be asked."""
        from sidecar.engine.interpreter import NoPython

        with suppress(NoPython):
            for engine_id, target, source in self.interpreter.engines:
                yield Found(engine_id, target, "package", source)


def installed() -> Iterator[Found]:
    """The engines that installed packages register."""
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
    """Whether the environment lets the engine be loaded."""
    only = os.environ.get(ENV_LOAD)
    return only is None or found.is_built_in or found.id in {name.strip() for name in only.split(",")}


LINKS_FILE = "linked-engines.json"


class LinksUnreadable(Exception):
    """Raised when the file of links is not what `engines link` writes."""


class _Links(msgspec.Struct):
    folders: list[str] = []


def read_links(file: Path) -> list[str]:
    """The linked folders, in the order in which they were linked; none where the file cannot be read."""
    try:
        return _read(file)
    except LinksUnreadable:
        return []


def add_link(file: Path, folder: Path) -> bool:
    """Link a folder; false where it was linked already.

    Raises:
        LinksUnreadable: the file holds something else.
    """
    folders = _read(file)
    if str(folder) in folders:
        return False
    _write(file, [*folders, str(folder)])
    return True


def remove_link(file: Path, folder: str) -> bool:
    """Take a folder out of the list; false where it was not in it.

    Raises:
        LinksUnreadable: the file holds something else.
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
        raise LinksUnreadable(f"{file} cannot be read ({error}); mend it or remove it") from error


def _write(file: Path, folders: Sequence[str]) -> None:
    write(file, msgspec.json.format(msgspec.json.encode(_Links(list(folders))), indent=2) + b"\n")
