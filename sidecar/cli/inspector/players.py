"""Conversations that are looked at, and the sidecars that play them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple, cast
from urllib.parse import urlencode

from sidecar.cli.inspector.history import History
from sidecar.cli.lab.recording import Recording, Step, Tally, steps_of
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.dialects import dialect
from sidecar.messages.importers.transcript import Imported, Span
from sidecar.protocol.base import MessageFormat
from sidecar.tokens.choose import counter

TRANSCRIPT = "transcript"
"""Stands for the file in addresses; sessions have `session/` in front of their ids."""
MOST_HISTORIES = 4
PATIENCE_S = 0.3
"""How long a page waits for a conversation to be played; it then shows the turns that there are."""
WHOLE_S = 300.0
"""How long one waits for a turn that it needs."""
_GLANCE_S = 0.05

Start = Callable[[str | None, MessageFormat], SidecarClient]
"""Starts a sidecar for an engine (as configured if `None`) and a dialect, whose store is memory."""


class Asked(NamedTuple):
    """What of which conversation is to be shown, with which engine, within which budget."""

    source: str
    engine: str
    budget: int

    @property
    def session(self) -> str:
        """The id of the stored session."""
        return self.source.removeprefix("session/")

    def address(self, **more: object) -> str:
        """The query of a page about it."""
        return urlencode({"source": self.source, "engine": self.engine, "budget": self.budget, **more})


class Conversation(NamedTuple):
    """The messages of a transcript or of a stored session."""

    version: str
    """Differs once the session has changed."""
    message_format: MessageFormat
    steps: list[Step]
    tally: Tally


class _Playing(NamedTuple):
    history: History
    told: list[Step]
    """The messages that have been handed over to be played."""
    tasks: list[asyncio.Task[None]]
    """The newest is the one that plays."""
    stack: AsyncExitStack


class Players:
    """Reads conversations, and plays each to a sidecar of its own for every engine and budget asked for."""

    def __init__(self, store: SidecarClient, recording: Recording | None, start: Start) -> None:
        self._store = store
        self._start = start
        self._playing: OrderedDict[Asked, _Playing] = OrderedDict()
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._reading = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._recorded: Conversation | None = None
        if recording is not None:
            tally = Tally(recording.dialect, counter("auto"))
            self._recorded = Conversation("", recording.message_format, recording.steps, tally)

    async def close(self) -> None:
        """End the sidecars."""
        for playing in self._playing.values():
            await _end(playing)

    async def version(self, asked: Asked) -> str:
        """What changes when a page is out of date: the conversation, or how much of it is played."""
        playing = self._playing.get(asked)
        played = len(playing.history.steps) if playing else 0
        return f"{await self._version(asked.source)} {played}"

    async def _version(self, source: str) -> str:
        if source == TRANSCRIPT:
            return ""
        entry = await self._store.session(source.removeprefix("session/"))
        return f"{entry.updated_at} {entry.message_count}"

    async def conversation(self, source: str) -> Conversation:
        """The messages as they are now."""
        if source == TRANSCRIPT and self._recorded is not None:
            return self._recorded
        async with self._reading:
            version = await self._version(source)
            known = self._conversations.get(source)
            if known is None or known.version != version:
                known = await self._read(source, version, known)
            self._conversations[source] = known
            self._conversations.move_to_end(source)
            while len(self._conversations) > MOST_HISTORIES:
                self._conversations.popitem(last=False)
            return known

    async def _read(self, source: str, version: str, before: Conversation | None) -> Conversation:
        session = source.removeprefix("session/")
        entry = await self._store.session(session)
        items = [
            Imported(message.body, message.message_id, None, Span(0, 0))
            async for page in self._store.export(session)
            for message in page.messages
        ]
        # What was read of a message, and counted, is kept: mostly a few are new.
        tally = before.tally if before else Tally(dialect(entry.message_format), counter("auto"))
        message_format = cast("MessageFormat", entry.message_format)
        return Conversation(version, message_format, steps_of(items, tally.read), tally)

    async def played(self, asked: Asked, *, until: int | None = 0) -> tuple[History, Conversation, int]:
        """What the engine makes of the conversation, and how many messages are still to be played.

        That is as much as is played soon, or at least up to turn `until`; all of it where that is `None`.
        """
        conversation = await self.conversation(asked.source)
        steps = conversation.steps
        async with self._starting:
            playing = self._playing.get(asked)
            if playing is None:
                playing = self._playing[asked] = await self._started(asked, conversation)
            self._playing.move_to_end(asked)
            while len(self._playing) > MOST_HISTORIES:
                await _end(self._playing.popitem(last=False)[1])
        told = playing.told
        if len(steps) < len(told) or any(
            old is not new and old.message != new.message for old, new in zip(told, steps, strict=False)
        ):
            # Earlier messages have changed: begin again.
            del self._playing[asked]
            await _end(playing)
            return await self.played(asked, until=until)
        if len(steps) > len(told):
            new, before = steps[len(told) :], playing.tasks[-1:]
            told += new
            playing.tasks[:] = [asyncio.create_task(_play(playing.history, new, before))]
        await _wait(playing, until)
        return playing.history, conversation, len(told) - len(playing.history.steps)

    async def _started(self, asked: Asked, conversation: Conversation) -> _Playing:
        stack = AsyncExitStack()
        client = self._start(asked.engine or None, conversation.message_format)
        history = History(await stack.enter_async_context(client), conversation.tally, asked.budget)
        return _Playing(history, [], [], stack)


async def _wait(playing: _Playing, until: int | None) -> None:
    if until == 0:
        await asyncio.wait(playing.tasks, timeout=PATIENCE_S)
    else:
        async with asyncio.timeout(WHOLE_S):
            while not all(task.done() for task in playing.tasks):
                turns = playing.history.turns
                # The turn that is asked for is complete once the next one has begun.
                if until is not None and turns and turns[-1].number > until:
                    break
                await asyncio.wait(playing.tasks, timeout=_GLANCE_S)
    for task in playing.tasks:
        if task.done() and not task.cancelled():
            task.result()


async def _play(history: History, steps: list[Step], before: Sequence[asyncio.Task[None]]) -> None:
    if before:
        await asyncio.wait(before)
    await history.extend(steps)


async def _end(playing: _Playing) -> None:
    for task in playing.tasks:
        task.cancel()
    await asyncio.gather(*playing.tasks, return_exceptions=True)
    await playing.stack.aclose()
