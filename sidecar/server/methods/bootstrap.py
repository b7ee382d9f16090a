"""`context/bootstrap`: imports the whole transcript of a host, in the background if it asks for that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Raw

from sidecar.engine.calls import AfterTurnRequest
from sidecar.messages.fence import OPENING_BYTES
from sidecar.protocol.context import BootstrapContextParams, BootstrapContextResult
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.peer import Progress
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.methods.lanes import import_lane
from sidecar.server.methods.turns import HandOver
from sidecar.server.sessions.live import IMPORT_STATE
from sidecar.server.sessions.reconcile import claim_anew
from sidecar.server.sessions.transcript import read_messages, settle
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import NewMessage, SessionHead
from sidecar.store.writes import Delete, SaveState, Truncate

if TYPE_CHECKING:
    from sidecar.server.sessions.live import LiveSession


BATCH = 500
"""Messages that are stored in one step."""

Keep = Callable[[Sequence[NewMessage]], Awaitable[object]]
"""Stores some messages by the engine's own way."""

STEP = 200
"""Messages that are read, compared or stored before anybody else has a turn."""

_log = logging.getLogger(__name__)


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the method that imports transcripts."""
    router.request(
        "context/bootstrap",
        BootstrapContextParams,
        BootstrapHandler(sidecar).bootstrap,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.importing,
    )


class BootstrapHandler:
    """Aligns the host's transcript with what is stored, and stores the rest."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def bootstrap(self, params: BootstrapContextParams, call: Call) -> BootstrapContextResult:
        """Import what is new in the host's transcript."""
        if params.background:
            call.keep_only_lane(import_lane(params.session_id))
        over = await HandOver.begin(self._sidecar, params, call)
        if not over.stores:
            return _nothing("the legacy engine stores nothing")
        if params.messages is not None:
            messages: Sequence[bytes | Raw] = params.messages
        elif params.session_file is not None:
            loaded = await self._load(params.session_file, params.session_file_format)
            if isinstance(loaded, str):
                return _nothing(loaded)
            messages = loaded
        else:
            raise InvalidParams("one of messages and sessionFile is needed", path="/messages")
        imported = await (
            self._import_in_steps(over, params, call, messages)
            if params.background
            else self._import(over, messages)
        )
        if not imported:
            return _nothing("nothing new in the transcript")
        return BootstrapContextResult(
            bootstrapped=True, imported_messages=imported, fallback_for=over.live.stood_in
        )

    async def _import(self, over: HandOver, messages: Sequence[bytes | Raw]) -> int:
        """How many messages were stored; a session begins even where there are none."""
        new = await self._sidecar.reconciler.of_transcript(over.live, messages)
        for some in portions(new, BATCH):
            await over.keep(some)
        if not new and over.live.head is None:
            await over.keep([])
        return len(new)

    async def _import_in_steps(
        self, over: HandOver, params: BootstrapContextParams, call: Call, messages: Sequence[bytes | Raw]
    ) -> int:
        """How many messages were stored, while requests that store nothing go on."""
        over.can_be_taken_back = True
        progress = Progress(self._sidecar.host.peer, params.work_done_token)
        work = BackgroundImport(self._sidecar, over.live, over.keep, progress)
        call.on_cancel = work.cancel
        imported = await work.run(messages)
        over.go_through()
        instance = over.instance
        if instance.has("after_turn") and instance.engine.info.turn_maintenance_mode == "background":
            told = instance.engine.after_turn(
                instance.session_for(over.session()), AfterTurnRequest(budget=None)
            )
            await self._sidecar.runner.run(instance, "context/afterTurn", told, params.session_id)
        return imported

    async def _load(self, locator: str, name: str | None) -> list[bytes] | str:
        """The messages of a transcript file, or why there are none."""
        from sidecar.messages.importers import TranscriptError, load
        from sidecar.messages.importers.transcript import nothing_in

        path = Path(locator)
        if not await asyncio.to_thread(path.is_file):
            return "sessionFile names no file"
        try:
            transcript = await asyncio.to_thread(load, path, name)
        except TranscriptError as error:
            raise InvalidParams(f"sessionFile: {error}", path="/sessionFile") from None
        if transcript.message_format != self._sidecar.host.message_format:
            raise InvalidParams(
                f"sessionFile: the file holds {transcript.message_format} messages",
                path="/sessionFile",
                messageFormat=transcript.message_format,
            )
        return [item.message for item in transcript.items] or nothing_in(transcript.skipped)


def _nothing(reason: str) -> BootstrapContextResult:
    return BootstrapContextResult(bootstrapped=False, imported_messages=0, reason=reason)


class BackgroundImport:
    """One import; messages are stored in order, each step durable, and taken back where it is cancelled."""

    def __init__(self, sidecar: Sidecar, live: LiveSession, keep: Keep, progress: Progress) -> None:
        self._sidecar = sidecar
        self._live = live
        self._keep = keep
        self._progress = progress
        self._stored = 0
        self._cancelled = False

    def cancel(self) -> bool:
        """Stop at the next step; false, since what is stored by then has to be taken back first."""
        self._cancelled = True
        return False

    async def run(self, messages: Sequence[bytes | Raw]) -> int:
        """How many messages were stored; those at the start that are stored already are passed over.

        Raises:
            InvalidParams: one of them is no message; then nothing is stored.
        """
        session_id, before = self._live.ref.session_id, self._live.head
        self._sidecar.importing.add(session_id)
        self._progress.begin("Importing", cancellable=True)
        try:
            new = await self._new(messages)
            await self._store(new)
        except asyncio.CancelledError:
            await asyncio.shield(self._take_back(before))
            raise
        finally:
            self._sidecar.importing.discard(session_id)
            self._progress.end()
        return len(new)

    async def _new(self, messages: Sequence[bytes | Raw]) -> list[NewMessage]:
        """What is not stored yet, in order."""
        read: list[NewMessage] = []
        for index, message in enumerate(messages):
            if index % STEP == 0:
                await self._pause("reading", index, len(messages))
            raw = bytes(message)
            one = self._sidecar.intake.read(raw, path=f"/messages/{index}")
            if OPENING_BYTES not in raw or not await self._is_ours(raw):
                read.append(one)
        known = await self._known(read)
        if known is None:  # another history than the beginning of this one
            return await self._sidecar.reconciler.of_transcript(self._live, messages)
        return read[known:]

    async def _is_ours(self, raw: bytes) -> bool:
        messages = read_messages(self._live, [raw])
        await settle(self._live, messages)
        return messages[0].reading.mark is not None

    async def _known(self, read: Sequence[NewMessage]) -> int | None:
        """How many messages are stored, `None` where these are not the first ones, byte for byte."""
        head = self._live.head
        count = head.message_count if head else 0
        if count > len(read):
            return None
        for first in range(1, count + 1, STEP):
            last = min(first + STEP - 1, count)
            stored = await self._live.store.messages(self._live.ref, first, last)
            if any(message.body != read[message.position - 1].body for message in stored):
                return None
            await self._pause("comparing", first, count)
        return count

    async def _store(self, new: Sequence[NewMessage]) -> None:
        head = self._live.head
        total = (head.message_count if head else 0) + len(new)
        if not new:
            if head is None:
                await self._keep([])
            return
        await self._note(str(total).encode())
        for some in portions(new, STEP):
            await self._keep(some)
            self._stored += len(some)
            await self._pause("storing", self._stored, len(new))
        await self._note(None)

    async def _note(self, total: bytes | None) -> None:
        """Keep that an import is going on, for whoever asks after this process has ended."""
        await self._sidecar.store.write(SaveState(self._live.ref, IMPORT_STATE, total))

    async def _pause(self, what: str, done: int, of: int) -> None:
        self._progress.report(f"{what} {done} of {of} messages", percentage=100 * done // max(of, 1))
        await asyncio.sleep(0)
        if self._cancelled:
            raise asyncio.CancelledError

    async def _take_back(self, before: SessionHead | None) -> None:
        """Leave nothing of a cancelled import."""
        sidecar, ref = self._sidecar, self._live.ref
        head = await sidecar.store.session(ref)
        count = before.message_count if before else 0
        if head is None or (before is not None and head.revision != before.revision):
            return
        if before is not None and head.message_count == count:
            await self._note(None)
        elif head.message_count - count not in range(self._stored + STEP + 1):
            _log.warning("an import was cancelled, and others have stored messages behind it: it stays")
        elif before is None:
            await sidecar.store.write(Delete(ref))
            sidecar.sessions.forget(ref.session_id)
            sidecar.engines.forget()
        else:
            last = await sidecar.store.messages(ref, count, count) if count else []
            await sidecar.store.write(Truncate(ref, last[0].message_id if last else None))
            await self._note(None)
            sidecar.sessions.rewound(ref.session_id)
            await claim_anew(sidecar.store, ref)


def portions(new: Sequence[NewMessage], size: int) -> Iterator[Sequence[NewMessage]]:
    """The messages, so many at a time; all at once where some have their places among stored ones."""
    if any(message.after is not None for message in new):
        size = len(new)
    for start in range(0, len(new), size):
        yield new[start : start + size]
