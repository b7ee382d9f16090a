"""Answers in the place of an engine that has failed, where the operator has asked for that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from sidecar.engine.calls import CompactOutcome, CompactRequest, IncomingMessage, IngestOutcome
from sidecar.protocol.base import FallbackFor
from sidecar.server.engines import LEGACY
from sidecar.server.failures import EngineFailed

if TYPE_CHECKING:
    from msgspec import Struct

    from sidecar.server.engine_session import EngineSession
    from sidecar.server.seat import Seat
    from sidecar.server.sidecar import Sidecar

T = TypeVar("T")


async def asked(
    sidecar: Sidecar,
    seat: Seat,
    method: str,
    work: Awaitable[T],
    session_id: str,
    instead: Callable[[], Awaitable[T]],
    *,
    result: type[Struct] | None = None,
) -> tuple[T, FallbackFor | None]:
    """An engine's answer; with `plugins.onEngineFailure = "legacy"`, `instead` and why where it fails.

    Raises:
        EngineFailed: it failed, and nothing may stand in for it.
    """
    try:
        return await sidecar.run_engine(seat, method, work, session_id, result=result), None
    except EngineFailed as error:
        if sidecar.settings.on_engine_failure != LEGACY or seat.trusted:
            raise
        return await instead(), FallbackFor(id=seat.id, reason=str(error.data["message"]))


async def compact_as_legacy(
    sidecar: Sidecar, seat: Seat, session: EngineSession, request: CompactRequest
) -> CompactOutcome:
    """What the host makes of a compaction; a refusal where it does not compact by itself."""
    if "runtime/compact" not in sidecar.host_capabilities:
        return CompactOutcome(
            ok=False, compacted=False, reason=f"{seat.id} failed, and the host cannot compact"
        )
    from sidecar.server.host_services import HostServices

    return await HostServices(sidecar, seat.id, None).delegate_compaction(session, request)


async def ingested(
    sidecar: Sidecar, seat: Seat, method: str, session: EngineSession, message: IncomingMessage
) -> tuple[IngestOutcome, FallbackFor | None]:
    """What an engine makes of a message; where it fails and something may stand in, the store takes it."""

    async def stored() -> IngestOutcome:
        return session.stored or await sidecar.intake.store(session, message)

    work = seat.engine.ingest(seat.lend(session), message)
    return await asked(sidecar, seat, method, work, session.session_id, stored, result=IngestOutcome)
