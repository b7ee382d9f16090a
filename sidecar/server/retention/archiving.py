"""Sessions as files of lines of JSON, written before they are erased."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from sidecar.store.contract import SessionStore
from sidecar.store.lines import Owner, message_line, rfc3339
from sidecar.store.stored import SessionHead

_PAGE = 200
"""Messages that are read in one go."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NAME = 40
"""Characters of a session's id that its file is named after."""


class Archive:
    """A folder of archived sessions; `pause` is awaited before every step."""

    def __init__(self, store: SessionStore, folder: Path, pause: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._folder = folder
        self._pause = pause

    async def write(self, head: SessionHead) -> Path | None:
        """The file that now has all messages of a session, synced; `None` where the session has changed.

        Raises:
            OSError: it cannot be written.
            StoreError: the store cannot serve.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / _file_name(head)
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        owner = Owner(head.ref, head.message_format, head.agent_id, head.session_key)
        written = 0
        with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as lines:
            try:
                for first in range(1, head.message_count + 1, _PAGE):
                    await self._pause()
                    messages = await self._store.messages(head.ref, first, first + _PAGE - 1)
                    await asyncio.to_thread(lines.writelines, [message_line(owner, m) for m in messages])
                    written += len(messages)
                lines.flush()
                await asyncio.to_thread(os.fsync, lines.fileno())
                if written != head.message_count or await self._store.session(head.ref) != head:
                    return None
                part.rename(file)
            finally:
                part.unlink(missing_ok=True)
        return file


def _file_name(head: SessionHead) -> str:
    """A name that tells people what it is; an id is no path, so only letters and digits of it are used."""
    name = _UNSAFE.sub("-", head.ref.session_id)[:_NAME].strip("-") or "session"
    day = rfc3339(head.updated_ms)[:19].replace(":", "").replace("-", "")
    return f"{day}Z-{name}-{head.uid}.jsonl"
