"""Puts a restored store in the place of another one, so that a kill at any moment loses neither.

A marker beside the store says which process restores and, once the copy is whole, what the old store is to be
called. Whoever opens the store next goes on from there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from sidecar.private_files import write
from sidecar.store.errors import StoreUnavailable

_SUFFIXES = ("-journal", "-wal", "-shm", "")


class _Marker(msgspec.Struct):
    pid: int
    started: str = ""
    """When that process started, where the system tells: ids are given out again."""
    kept: str | None = None
    """What the store that was there is to be called; set once the copy is whole."""


def marker_of(path: Path) -> Path:
    """The file that says that the store is being restored."""
    return path.with_name(f"{path.name}.restoring")


def fresh_of(path: Path) -> Path:
    """The copy that is to take the store's place."""
    return path.with_name(f"{path.name}.restored")


def begin(path: Path) -> None:
    """Say that this process makes a copy; whatever an earlier one has left of its own is removed."""
    settle(path)
    write(marker_of(path), msgspec.json.encode(_Marker(os.getpid(), _start_of(os.getpid()))))


def commit(path: Path, kept: Path) -> None:
    """Give the store that is there the name `kept`, and its own name to the copy."""
    write(marker_of(path), msgspec.json.encode(_Marker(os.getpid(), _start_of(os.getpid()), kept.name)))
    _finish(path, kept)


def abandon(path: Path) -> None:
    """Remove the copy, and what says that there is one."""
    for file in remains(path):
        file.unlink(missing_ok=True)


def remains(path: Path) -> list[Path]:
    """What a restore leaves that is killed, the marker last."""
    fresh = fresh_of(path)
    part = fresh.with_name(f"{fresh.name}.part")
    found = [base.with_name(base.name + suffix) for base in (part, fresh) for suffix in _SUFFIXES]
    return [file for file in (*found, marker_of(path)) if file.exists()]


def settle(path: Path) -> None:
    """Bring a restore that was killed to its end: forward where its copy is whole, else back.

    Raises:
        StoreUnavailable: one is at work now.
    """
    try:
        data = marker_of(path).read_bytes()
    except FileNotFoundError:
        return
    marker = _Marker(0)
    with suppress(msgspec.MsgspecError):
        marker = msgspec.json.decode(data, type=_Marker)
    if marker.pid != os.getpid() and _alive(marker.pid) and _start_of(marker.pid) == marker.started:
        raise StoreUnavailable(
            "the store is being restored", "Wait for `context-sidecar db restore` to end.", retryable=True
        )
    if marker.kept is None:
        abandon(path)
    else:
        _finish(path, path.with_name(marker.kept))


def _finish(path: Path, kept: Path) -> None:
    fresh = fresh_of(path)
    if fresh.exists():
        for suffix in _SUFFIXES:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(kept.with_name(kept.name + suffix))
        fresh.rename(path)
    abandon(path)


def _start_of(pid: int) -> str:
    """The boot and the tick at which a process started; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return f"{boot} {int(fields[19])}"
    except (OSError, ValueError, IndexError):
        return ""


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
