"""Stores episodes in one file, one JSON object per line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sidecar.episodes.contract import Delivered, EpisodeHead, EpisodePayload, Ranked, Remembered
from sidecar.private_files import make_folder, write
from sidecar.store.buffer import Episode

CHECKED = 8 << 20
"""Bytes at the end of the file checked for repetitions, which come soon or never."""
SEARCHED = 4 << 20
"""Bytes at the end of the file that are searched."""

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class FileBackend:
    """Appends to a file that several processes may share; no episode is in it twice."""

    name = "the file of episodes"
    batch = 64
    limit_s = 8.0

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._one_at_a_time = asyncio.Lock()

    async def deliver(self, episodes: Sequence[Episode]) -> Delivered:
        """See `EpisodeBackend`; episodes taken are on the disk."""
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(self._append, episodes)
        except OSError as error:
            return Delivered((), problem=f"it cannot be written: {error.strerror}")
        return Delivered([episode.rowid for episode in episodes])

    async def forget(self, namespace: str, session_id: str) -> None:
        """See `EpisodeBackend`."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._erase, namespace, session_id)

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """See `EpisodeBackend`; searches the newest episodes."""
        return await asyncio.to_thread(self._search, namespace, agent_id, query, limit)

    async def close(self) -> None:
        """Nothing to close."""

    def _append(self, episodes: Sequence[Episode]) -> None:
        with self._locked() as file:
            size = _end_of_last_line(file)
            known = {head.key for head in _heads(_tail(file, size, CHECKED))}
            lines: list[bytes] = []
            for episode in episodes:
                key = msgspec.json.decode(episode.payload, type=EpisodeHead).key
                if key not in known:
                    known.add(key)
                    lines.append(episode.payload + b"\n")
            os.ftruncate(file, size)
            os.lseek(file, size, os.SEEK_SET)
            _write(file, b"".join(lines))
            os.fsync(file)

    def _erase(self, namespace: str, session_id: str) -> None:
        if not self._path.exists():
            return
        with self._locked() as file:
            size = _end_of_last_line(file)
            kept: list[bytes] = []
            found = False
            for line in _tail(file, size, size).splitlines():
                head = _head(line)
                if head and (head.namespace, head.session_id) == (namespace, session_id):
                    found = True
                else:
                    kept.append(line + b"\n")
            if found:
                self._replace(b"".join(kept))

    def _replace(self, data: bytes) -> None:
        """Replace the file; processes waiting for its lock reopen it."""
        write(self._path, data)

    def _search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        if not self._path.exists():
            return []
        with self._locked() as file:
            data = _tail(file, _end_of_last_line(file), SEARCHED)
        ranked = Ranked(query)
        for line in data.splitlines():
            head = _head(line)
            if head is None or (head.namespace, head.agent_id) != (namespace, agent_id):
                continue
            payload = msgspec.json.decode(line, type=EpisodePayload)
            for message in payload.messages:
                if message.role in ("user", "assistant"):
                    ranked.add(
                        Remembered(
                            f"{payload.key}:{message.message_id}",
                            message.text,
                            0.0,
                            payload.session_id,
                            message.message_id,
                            message.role,
                            message.timestamp,
                        )
                    )
        return ranked.best(limit)

    @contextmanager
    def _locked(self) -> Generator[int]:
        make_folder(self._path.parent)
        file = self._opened()
        while not self._is(file):
            os.close(file)
            file = self._opened()
        try:
            yield file
        finally:
            os.close(file)

    def _opened(self) -> int:
        """Open the file and wait for its lock."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        try:
            _lock(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def _is(self, file: int) -> bool:
        """Whether the path still refers to the opened file."""
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False


def _lock(file: int) -> None:
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # not available on this system; leases keep processes apart
        return
    flock(file, LOCK_EX)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _tail(file: int, size: int, most: int) -> bytes:
    """The last complete lines before `size`, at most `most` bytes."""
    start = max(0, size - most)
    os.lseek(file, start, os.SEEK_SET)
    parts: list[bytes] = []
    left = size - start
    while left > 0 and (part := os.read(file, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    return data if start == 0 else data[data.find(b"\n") + 1 :]


def _end_of_last_line(file: int) -> int:
    """The end of the last complete line, ignoring a partial line left by a killed process."""
    size = os.lseek(file, 0, os.SEEK_END)
    step = 1 << 16
    while size > 0:
        start = max(0, size - step)
        os.lseek(file, start, os.SEEK_SET)
        found = os.read(file, size - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _heads(data: bytes) -> Iterator[EpisodeHead]:
    for line in data.splitlines():
        if (head := _head(line)) is not None:
            yield head


def _head(line: bytes) -> EpisodeHead | None:
    """The key members of a line; `None` if the sidecar did not write it."""
    try:
        return msgspec.json.decode(line, type=EpisodeHead)
    except msgspec.MsgspecError:
        return None
