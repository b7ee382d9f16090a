"""`context/bootstrap`: the whole transcript of a host."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Raw

from sidecar.engine.calls import AfterTurnRequest
from sidecar.protocol.context import BootstrapContextParams, BootstrapContextResult
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.progress import Progress
from sidecar.rpc.router import Order, Router
from sidecar.server.handlers.hand_over import HandOver
from sidecar.server.handlers.lane import import_lane
from sidecar.server.sessions.importing import BackgroundImport, portions
from sidecar.server.sidecar import Sidecar

BATCH = 500
"""Messages that are stored in one step."""


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
        progress = Progress(self._sidecar.peer, params.work_done_token)
        work = BackgroundImport(self._sidecar, over.live, over.keep, progress)
        call.on_cancel = work.cancel
        imported = await work.run(messages)
        over.go_through()
        seat = over.seat
        if seat.has("after_turn") and seat.engine.info.turn_maintenance_mode == "background":
            told = seat.engine.after_turn(seat.lend(over.session()), AfterTurnRequest(budget=None))
            await self._sidecar.run_engine(seat, "context/afterTurn", told, params.session_id)
        return imported

    async def _load(self, locator: str, name: str | None) -> list[bytes] | str:
        """The messages of a transcript file, or why there are none."""
        from sidecar.messages.importers import TranscriptError, load

        path = Path(locator)
        if not await asyncio.to_thread(path.is_file):
            return "sessionFile names no file"
        try:
            transcript = await asyncio.to_thread(load, path, name)
        except TranscriptError as error:
            raise InvalidParams(f"sessionFile: {error}", path="/sessionFile") from None
        if transcript.message_format != self._sidecar.profile.message_format:
            raise InvalidParams(
                f"sessionFile: the file holds {transcript.message_format} messages",
                path="/sessionFile",
                messageFormat=transcript.message_format,
            )
        return [item.message for item in transcript.items]


def _nothing(reason: str) -> BootstrapContextResult:
    return BootstrapContextResult(bootstrapped=False, imported_messages=0, reason=reason)
