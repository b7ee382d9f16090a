"""What the methods that keep something answer about sessions of which nothing is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from sidecar.protocol.context import (
    AfterTurnContextParams,
    AfterTurnContextResult,
    BootstrapContextParams,
    BootstrapContextResult,
    CommitTurnContextParams,
    CommitTurnContextResult,
    CompactContextParams,
    CompactContextResult,
    IngestBatchContextParams,
    IngestBatchContextResult,
    IngestContextParams,
    IngestContextResult,
    MaintainContextParams,
    MaintainContextResult,
)
from sidecar.protocol.session import ForkSessionParams, PinSessionParams
from sidecar.protocol.subagent import PrepareSpawnSubagentParams, PrepareSpawnSubagentResult
from sidecar.rpc.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidecar.rpc.router import Answer
    from sidecar.server.sessions.exempt import Exemption, ExemptSessions
    from sidecar.server.sidecar import Sidecar


class ExemptAnswers:
    """Answers in the place of handlers; what is no message is refused as ever."""

    def __init__(self, sidecar: Sidecar, exempt: ExemptSessions) -> None:
        self._sidecar = sidecar
        self._exempt = exempt

    def by_method(self) -> dict[str, Answer[Any]]:
        """The answers, for the methods that would keep something."""
        return {
            "context/ingest": self.ingest,
            "context/ingestBatch": self.ingest_batch,
            "context/bootstrap": self.bootstrap,
            "context/afterTurn": self.after_turn,
            "context/commitTurn": self.commit_turn,
            "context/compact": self.compact,
            "context/maintain": self.maintain,
            "session/pin": self.pin,
            "session/fork": self.fork,
            "subagent/prepareSpawn": self.prepare_spawn,
        }

    def ingest(self, params: IngestContextParams) -> IngestContextResult | None:
        """Nothing is stored."""
        exemption = self._exempt.of(params.session_id, params.session_key)
        if exemption is None:
            return None
        self._check(params.message, "/message")
        return IngestContextResult(
            ingested=False, message_id=params.message_id or "", turn_id="", reason=exemption.reason
        )

    def ingest_batch(self, params: IngestBatchContextParams) -> IngestBatchContextResult | None:
        """Nothing is stored."""
        ids = params.message_ids or [None] * len(params.messages)
        if self._exempt.of(params.session_id, params.session_key) is None or len(ids) != len(params.messages):
            return None
        self._check_all(params.messages)
        return IngestBatchContextResult(ingested_count=0, message_ids=[id or "" for id in ids])

    def bootstrap(self, params: BootstrapContextParams) -> BootstrapContextResult | None:
        """Nothing is imported."""
        exemption = self._exempt.of(params.session_id, params.session_key)
        if exemption is None:
            return None
        self._check_all(params.messages)
        return BootstrapContextResult(bootstrapped=False, imported_messages=0, reason=exemption.reason)

    def after_turn(self, params: AfterTurnContextParams) -> AfterTurnContextResult | None:
        """The engine is not told of the turn."""
        if self._exempt.of(params.session_id, params.session_key) is None:
            return None
        self._check_all(params.messages)
        return AfterTurnContextResult()

    def commit_turn(self, params: CommitTurnContextParams) -> CommitTurnContextResult | None:
        """The turn is done with, however often it comes: a host that hears anything else sends it again."""
        if self._exempt.of(params.session_id, params.session_key) is None:
            return None
        self._check_all(params.messages)
        return CommitTurnContextResult(status="committed")

    def compact(self, params: CompactContextParams) -> CompactContextResult | None:
        """Declined, unless the host itself can compact what engines never see."""
        exemption = self._exempt.of(params.session_id, params.session_key)
        if exemption is None:
            return None
        if exemption.ignores and "runtime/compact" in self._sidecar.host_capabilities:
            return None
        return CompactContextResult(ok=True, compacted=False, reason=exemption.reason)

    def maintain(self, params: MaintainContextParams) -> MaintainContextResult | None:
        """There is nothing to tidy up."""
        exemption = self._exempt.of(params.session_id, params.session_key)
        if exemption is None:
            return None
        return MaintainContextResult(
            changed=False, bytes_freed=0, rewritten_entries=0, reason=exemption.reason
        )

    def pin(self, params: PinSessionParams) -> None:
        """A pin cannot be kept.

        Raises:
            InvalidParams: the session is exempt.
        """
        self._refuse(self._exempt.of(params.session_id), "/sessionId")

    def fork(self, params: ForkSessionParams) -> None:
        """A session cannot begin with messages that are not kept.

        Raises:
            InvalidParams: the new session is exempt.
        """
        self._refuse(self._exempt.of(params.new_session_id), "/newSessionId")

    def prepare_spawn(self, params: PrepareSpawnSubagentParams) -> PrepareSpawnSubagentResult | None:
        """Nothing is prepared for a child of which nothing is kept."""
        if self._exempt.of_child(params.child_session_key, params.child_session_id) is None:
            return None
        return PrepareSpawnSubagentResult(preparation_id=os.urandom(12).hex())

    def _refuse(self, exemption: Exemption | None, path: str) -> None:
        if exemption is not None:
            raise InvalidParams(
                f"{path[1:]}: {exemption.reason}",
                path=path,
                hint=f"use another session, or change {exemption.value}",
            )

    def _check_all(self, messages: Sequence[Raw] | None) -> None:
        for i, message in enumerate(messages or ()):
            self._check(message, f"/messages/{i}")

    def _check(self, message: Raw, path: str) -> None:
        self._sidecar.intake.read(bytes(message), path=path)
