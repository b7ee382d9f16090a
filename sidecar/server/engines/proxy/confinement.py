"""What the process of an engine gives up before it loads the engine, as far as the platform lets it.

On Linux it can gain no privileges any more. Where the kernel has Landlock (5.13 and newer), neither it nor
what it starts opens the store, the configuration file, or what `/proc` has of other processes, their memory
and environment among it. Elsewhere nothing of this holds; only the environment is short on every platform."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_GIVEN = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP", "TERM"),
        *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME"),
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"),
        *("LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS"),
    )
)
"""Variables that programs need to run at all, none of which is a secret."""
_NO_NEW_PRIVS = 38
_DUMPABLE = 4
"""Of `prctl`."""
_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls, of these numbers on every architecture."""
_READ, _WRITE, _TRUNCATE = 1 << 2, 1 << 1, 1 << 14
_REFER = 1 << 13
_CHANGE = sum(1 << bit for bit in range(4, 13))
"""Rights of Landlock: to remove and to make entries of folders."""
_RULE = struct.Struct("=Qi")
_PROCESSES = Path("/proc")


def environment(given: Mapping[str, str], wanted: Iterable[str] = ()) -> dict[str, str]:
    """What a process of an engine is told of the environment, `wanted` by the operator in addition."""
    names = _GIVEN | {name.upper() for name in wanted}
    return {name: value for name, value in given.items() if name.upper() in names or name.startswith("LC_")}


def hide_memory() -> None:
    """Keep other processes of the user out of this one's memory, where its engines cannot be confined."""
    if sys.platform == "linux" and not landlock_version():
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)


def confine(hidden: Sequence[str], needed: Iterable[str]) -> bool:
    """Give up what can be given up; whether `hidden` places are closed to this process from now on.

    What is `needed` to load code stays readable, also inside a hidden folder.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    version = landlock_version()
    if not version or not hidden:
        return False
    handled = _READ | _WRITE | _CHANGE | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    rules = ctypes.create_string_buffer(struct.pack("=Q", handled))
    ruleset = libc.syscall(_CREATE, rules, ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        hiding = [Path(os.path.realpath(each)) for each in (*hidden, _PROCESSES / str(os.getppid()))]
        for place in _beside(Path("/"), hiding):
            _allow(libc, ruleset, place, handled)
        for place in needed:
            if place:
                _allow(libc, ruleset, Path(os.path.realpath(place)), _READ)
        return libc.syscall(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def landlock_version() -> int:
    """The version of Landlock in this kernel, 0 where there is none."""
    return max(ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), 1), 0)


def _beside(folder: Path, hidden: Sequence[Path]) -> Iterable[Path]:
    """Everything in a folder but what is hidden; of folders around it, everything else in them."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        place = Path(entry.path)
        other = folder == _PROCESSES and entry.name.isdigit() and entry.name != str(os.getpid())
        if other or entry.is_symlink() or any(_is_of(place, each) for each in hidden):
            continue
        if any(each.is_relative_to(place) for each in hidden):
            yield from _beside(place, hidden)
        else:
            yield place


def _is_of(place: Path, hidden: Path) -> bool:
    """Whether a place is the hidden one, or belongs to it: a log, or what a restore replaced."""
    names = (f"{hidden.name}-", f"{hidden.name}.")
    return place == hidden or (place.parent == hidden.parent and place.name.startswith(names))


def _allow(libc: ctypes.CDLL, ruleset: int, place: Path, rights: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _READ | _WRITE | _TRUNCATE
        rule = ctypes.create_string_buffer(_RULE.pack(rights, descriptor))
        libc.syscall(_ADD, ruleset, 1, rule, 0)
    finally:
        os.close(descriptor)
