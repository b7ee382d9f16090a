"""Keeps the list of folders that are linked for development, in a file beside the configuration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

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
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(f".{os.getpid()}")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(_Links(list(folders))), indent=2) + b"\n")
    beside.replace(file)
