"""Sessions of which nothing is kept: which ones those are, and what their requests are answered."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
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
from sidecar.protocol.session import (
    ForkSessionParams,
    PinSessionParams,
    PrepareSpawnSubagentParams,
    PrepareSpawnSubagentResult,
)
from sidecar.rpc.errors import InvalidParams
from sidecar.server.configuration.settings import ExemptionSettings

if TYPE_CHECKING:
    from sidecar.rpc.router import Answer
    from sidecar.server.sessions.intake import Intake


REMEMBERED = 20_000
"""Sessions whose exemption is remembered."""


class Exemption(Enum):
    """Why nothing is kept of a session; the value is the setting that says so."""

    IGNORED = "sessions.ignoreSessionPatterns"
    """Engines never see it: the host's list is passed through."""
    STATELESS = "sessions.statelessSessionPatterns"
    """The engine serves it from what the host sends, and from what was stored before; nothing is added."""

    @property
    def ignores(self) -> bool:
        """Whether engines never see the session."""
        return self is Exemption.IGNORED

    @property
    def reason(self) -> str:
        """What the host is told."""
        return f"nothing is kept of this session, by {self.value}"


class ExemptSessions:
    """Knows a session by its key or its id, and by its id alone once its agent has named it with its key."""

    def __init__(self, settings: ExemptionSettings) -> None:
        self._ignored = _matcher(settings.ignored)
        self._stateless = _matcher(settings.stateless)
        self._known: OrderedDict[tuple[str, str | None], Exemption | None] = OrderedDict()

    @property
    def seen(self) -> int:
        """Sessions that were asked for lately and are not kept."""
        return sum(exemption is not None for exemption in self._known.values())

    @property
    def everything(self) -> Exemption | None:
        """What becomes of a session whatever it is called, `None` where that depends on its name."""
        return self._of(("\0", "\0:\0"), every=True)

    def of(
        self, session_id: str, session_key: str | None = None, agent_id: str | None = None
    ) -> Exemption | None:
        """Why nothing is kept of a session; `None` where it is kept."""
        known, whose = self._known, (session_id, agent_id)
        if session_key is None:
            told_before = next((name for name in (whose, (session_id, None)) if name in known), None)
            if told_before is not None:
                return known[told_before]
        names = (session_id,) if session_key is None else (session_key, session_id)
        known[whose] = exemption = self._of(names)
        known.move_to_end(whose)
        if len(known) > REMEMBERED:
            known.popitem(last=False)
        return exemption

    def of_child(self, session_key: str, session_id: str | None) -> Exemption | None:
        """Why nothing is kept of a session that is going to have that key, and perhaps that id."""
        return self._of((session_key, session_id)) if session_id else self._of((session_key,))

    def _of(self, names: Sequence[str], *, every: bool = False) -> Exemption | None:
        hits = all if every else any
        if hits(self._ignored(name) for name in names):
            return Exemption.IGNORED
        return Exemption.STATELESS if hits(self._stateless(name) for name in names) else None


def _matcher(patterns: Sequence[str]) -> Callable[[str], object]:
    """Tells whether a name matches any of the patterns: `*` is anything without a colon, `**` anything."""
    return re.compile("|".join(map(_expression, patterns)) or "(?!)", re.DOTALL).fullmatch


def _expression(pattern: str) -> str:
    """The pattern as a regular expression."""
    pieces = re.split(r"(\*+)", pattern)
    return "".join({"": "", "*": "[^:]*"}.get(p, ".*" if p[:1] == "*" else re.escape(p)) for p in pieces)


class ExemptAnswers:
    """Answers in the place of handlers; what is no message is refused as ever."""

    def __init__(self, exempt: ExemptSessions, intake: Intake, host_capabilities: frozenset[str]) -> None:
        self._exempt = exempt
        self._intake = intake
        self._host_capabilities = host_capabilities

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
        exemption = self._exempt.of(params.session_id, params.session_key, params.agent_id)
        if exemption is None:
            return None
        self._check(params.message, "/message")
        return IngestContextResult(
            ingested=False,
            message_id=self._intake.name(bytes(params.message), params.message_id),
            turn_id="",
            reason=exemption.reason,
        )

    def ingest_batch(self, params: IngestBatchContextParams) -> IngestBatchContextResult | None:
        """Nothing is stored."""
        ids = params.message_ids or [None] * len(params.messages)
        if self._exempt.of(params.session_id, params.session_key, params.agent_id) is None or len(ids) != len(
            params.messages
        ):
            return None
        self._check_all(params.messages)
        name = self._intake.name
        named = [name(bytes(raw), id) for raw, id in zip(params.messages, ids, strict=True)]
        return IngestBatchContextResult(ingested_count=0, message_ids=named)

    def bootstrap(self, params: BootstrapContextParams) -> BootstrapContextResult | None:
        """Nothing is imported."""
        exemption = self._exempt.of(params.session_id, params.session_key, params.agent_id)
        if exemption is None:
            return None
        self._check_all(params.messages)
        return BootstrapContextResult(bootstrapped=False, imported_messages=0, reason=exemption.reason)

    def after_turn(self, params: AfterTurnContextParams) -> AfterTurnContextResult | None:
        """The engine is not told of the turn."""
        if self._exempt.of(params.session_id, params.session_key, params.agent_id) is None:
            return None
        self._check_all(params.messages)
        return AfterTurnContextResult()

    def commit_turn(self, params: CommitTurnContextParams) -> CommitTurnContextResult | None:
        """The turn is done with, however often it comes: a host that hears anything else sends it again."""
        if self._exempt.of(params.session_id, params.session_key, params.agent_id) is None:
            return None
        self._check_all(params.messages)
        return CommitTurnContextResult(status="committed")

    def compact(self, params: CompactContextParams) -> CompactContextResult | None:
        """Declined, unless the host itself can compact what engines never see."""
        exemption = self._exempt.of(params.session_id, params.session_key, params.agent_id)
        if exemption is None:
            return None
        if exemption.ignores and "runtime/compact" in self._host_capabilities:
            return None
        return CompactContextResult(ok=True, compacted=False, reason=exemption.reason)

    def maintain(self, params: MaintainContextParams) -> MaintainContextResult | None:
        """There is nothing to tidy up."""
        exemption = self._exempt.of(params.session_id, params.session_key, params.agent_id)
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
        self._refuse(self._exempt.of(params.session_id, None, params.agent_id), "/sessionId")

    def fork(self, params: ForkSessionParams) -> None:
        """A session cannot begin with messages that are not kept.

        Raises:
            InvalidParams: the new session is exempt.
        """
        self._refuse(self._exempt.of(params.new_session_id, None, params.agent_id), "/newSessionId")

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
        self._intake.read(bytes(message), path=path)
