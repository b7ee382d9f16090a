"""The `context/*` requests of the client, and what the requests of every area have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict, TypeVar, Unpack

from msgspec import Raw
from msgspec.structs import replace

from sidecar.client.answers import AssembledContext, IngestedMessage, owned
from sidecar.client.deltas import AnswerMemory, Basis, apply_edits
from sidecar.client.errors import UnexpectedAnswer
from sidecar.client.message_bytes import (
    Message,
    encode_message,
    encode_messages,
    encode_object,
    encode_value,
)
from sidecar.protocol.assemble import AssembleContextParams, ExplainContextParams, ExplainContextResult
from sidecar.protocol.base import ABSENT, ProgressToken
from sidecar.protocol.context import (
    AfterTurnContextParams,
    AfterTurnContextResult,
    BootstrapContextParams,
    BootstrapContextResult,
    CommitTurnContextParams,
    CommitTurnContextResult,
    CompactContextParams,
    CompactContextResult,
    DisposeContextParams,
    DisposeContextResult,
    IngestBatchContextParams,
    IngestBatchContextResult,
    IngestContextParams,
    MaintainContextParams,
    MaintainContextResult,
    PreflightContextParams,
    PreflightContextResult,
)

T = TypeVar("T")


class AboutSession(TypedDict, total=False):
    """What may be said about a session beside its id."""

    session_key: str
    """Alias of the session."""
    agent_id: str
    """Owner of the session."""
    work_done_token: ProgressToken
    """Token under which progress is reported."""


class Requesting:
    """Sends requests; the client is one."""

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_s: float | None = None
    ) -> T:
        """The result of any request; `timeout_s` is in seconds, the client's own by default, 0 means none."""
        raise NotImplementedError


class ContextRequests(Requesting):
    """Storing messages, and asking what the model should see."""

    _answers: AnswerMemory | None = None
    """Set where assemble answers are asked for as edits."""

    async def bootstrap(
        self,
        session_id: str,
        messages: Iterable[Message] | None = None,
        *,
        session_file: str | None = None,
        session_file_format: str | None = None,
        background: bool | None = None,
        **about: Unpack[AboutSession],
    ) -> BootstrapContextResult:
        """Import what is new in the host's transcript: its messages, or a file of it.

        In the background, requests that store nothing go on meanwhile.
        """
        params = BootstrapContextParams(
            session_id=session_id,
            messages=encode_messages(messages),
            session_file=session_file,
            session_file_format=session_file_format,
            background=background,
            **about,
        )
        return await self.request("context/bootstrap", params, BootstrapContextResult)

    async def ingest(
        self,
        session_id: str,
        message: Message,
        *,
        message_id: str | None = None,
        turn_id: str | None = None,
        timestamp: str | None = None,
        is_heartbeat: bool | None = None,
        **about: Unpack[AboutSession],
    ) -> IngestedMessage:
        """Store one message; `timestamp` is RFC 3339 in UTC."""
        params = IngestContextParams(
            session_id=session_id,
            message=encode_message(message),
            message_id=message_id,
            turn_id=turn_id,
            timestamp=timestamp,
            is_heartbeat=is_heartbeat,
            **about,
        )
        return await self.request("context/ingest", params, IngestedMessage)

    async def ingest_batch(
        self,
        session_id: str,
        messages: Iterable[Message],
        *,
        message_ids: Iterable[str | None] | None = None,
        is_heartbeat: bool | None = None,
        **about: Unpack[AboutSession],
    ) -> IngestBatchContextResult:
        """Store several messages, all or none."""
        params = IngestBatchContextParams(
            session_id=session_id,
            messages=encode_messages(messages) or [],
            message_ids=None if message_ids is None else list(message_ids),
            is_heartbeat=is_heartbeat,
            **about,
        )
        return await self.request("context/ingestBatch", params, IngestBatchContextResult)

    async def assemble(
        self,
        session_id: str,
        token_budget: int | None = None,
        messages: Iterable[Message] | None = None,
        prompt: str | None = None,
        *,
        model: str | None = None,
        available_tools: Iterable[str] | None = None,
        citations_mode: str | None = None,
        projection: Literal["codex"] | None = None,
        **about: Unpack[AboutSession],
    ) -> AssembledContext:
        """What the model should see, within `token_budget` tokens.

        Raises:
            ContextOverflow: not even the smallest valid context fits; `required` tells what would do.
            SessionNotFound: the session is unknown, and no messages were sent along.
        """
        basis = self._answers.basis(session_id) if self._answers is not None else None
        params = AssembleContextParams(
            session_id=session_id,
            token_budget=token_budget,
            messages=encode_messages(messages),
            prompt=prompt,
            model=model,
            available_tools=None if available_tools is None else list(available_tools),
            citations_mode=citations_mode,
            previous_result_id=basis.result_id if basis is not None else None,
            projection=projection,
            **about,
        )
        answer = await self.request("context/assemble", params, AssembledContext)
        return self._whole(session_id, answer, basis)

    async def compact(
        self,
        session_id: str,
        token_budget: int | None = None,
        *,
        force: bool | None = None,
        force_reason: str | None = None,
        current_token_count: int | None = None,
        compaction_target: Literal["budget", "threshold"] | None = None,
        custom_instructions: str | None = None,
        **about: Unpack[AboutSession],
    ) -> CompactContextResult:
        """Make the context smaller, as the engine does it."""
        params = CompactContextParams(
            session_id=session_id,
            token_budget=token_budget,
            force=force,
            force_reason=force_reason,
            current_token_count=current_token_count,
            compaction_target=compaction_target,
            custom_instructions=custom_instructions,
            **about,
        )
        return await self.request("context/compact", params, CompactContextResult)

    async def after_turn(
        self,
        session_id: str,
        messages: Iterable[Message] | None = None,
        *,
        pre_prompt_message_count: int | None = None,
        token_budget: int | None = None,
        usage: Mapping[str, object] | None = None,
        is_heartbeat: bool | None = None,
        auto_compaction_summary: str | None = None,
        **about: Unpack[AboutSession],
    ) -> None:
        """Tell that a turn has ended: its new messages, or the whole transcript with the count before."""
        params = AfterTurnContextParams(
            session_id=session_id,
            messages=encode_messages(messages),
            pre_prompt_message_count=pre_prompt_message_count,
            token_budget=token_budget,
            usage=ABSENT if usage is None else encode_object(usage),
            is_heartbeat=is_heartbeat,
            auto_compaction_summary=auto_compaction_summary,
            **about,
        )
        await self.request("context/afterTurn", params, AfterTurnContextResult)

    async def commit_turn(
        self,
        session_id: str,
        advancement_key: str,
        messages: Iterable[Message],
        *,
        is_heartbeat: bool | None = None,
        admission: object = None,
        terminal: object = None,
        **about: Unpack[AboutSession],
    ) -> CommitTurnContextResult:
        """Store a turn exactly once: the same key is a duplicate."""
        params = CommitTurnContextParams(
            session_id=session_id,
            advancement_key=advancement_key,
            messages=encode_messages(messages) or [],
            is_heartbeat=is_heartbeat,
            admission=ABSENT if admission is None else encode_value(admission),
            terminal=ABSENT if terminal is None else encode_value(terminal),
            **about,
        )
        return await self.request("context/commitTurn", params, CommitTurnContextResult)

    async def maintain(
        self, session_id: str, token_budget: int | None = None, **about: Unpack[AboutSession]
    ) -> MaintainContextResult:
        """Let the engine tidy up between turns."""
        params = MaintainContextParams(session_id=session_id, token_budget=token_budget, **about)
        return await self.request("context/maintain", params, MaintainContextResult)

    async def preflight(
        self,
        session_id: str,
        token_budget: int,
        *,
        messages: Iterable[Message] | None = None,
        pending_tokens: int | None = None,
        **about: Unpack[AboutSession],
    ) -> PreflightContextResult:
        """Whether the context fits, with `pending_tokens` that are about to be added."""
        params = PreflightContextParams(
            session_id=session_id,
            token_budget=token_budget,
            messages=encode_messages(messages),
            pending_tokens=pending_tokens,
            **about,
        )
        return await self.request("context/preflight", params, PreflightContextResult)

    async def explain(
        self,
        session_id: str,
        *,
        result_id: str | None = None,
        turn_id: str | None = None,
        **about: Unpack[AboutSession],
    ) -> ExplainContextResult:
        """What the model saw, and why: in that result, that turn, or the newest answer."""
        params = ExplainContextParams(session_id=session_id, result_id=result_id, turn_id=turn_id, **about)
        return await self.request("context/explain", params, ExplainContextResult)

    async def dispose(self) -> None:
        """Flush and release the engine; the next call makes a fresh one."""
        await self.request("context/dispose", DisposeContextParams(), DisposeContextResult)

    def _whole(self, session_id: str, answer: AssembledContext, basis: Basis | None) -> AssembledContext:
        if answer.edits is not None and answer.messages is None:
            if basis is None:
                raise UnexpectedAnswer("the sidecar answered with edits that were not asked for")
            answer = replace(answer, messages=apply_edits(basis.messages, answer.edits), edits=None)
        messages: list[Raw] | None = answer.messages
        if messages is None:
            raise UnexpectedAnswer("the assemble result has neither messages nor edits")
        if self._answers is not None:
            kept = Basis(answer.result_id, [owned(message) for message in messages])
            self._answers.keep(session_id, kept)
        return answer
