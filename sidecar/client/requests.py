# Generated from sidecar/protocol by `make schema`; do not edit.
"""The requests of the client, in the order of the method table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict, TypeVar, Unpack

from sidecar.client.messages import (
    IngestedMessage,
    Message,
    encode_message,
    encode_messages,
    encode_object,
    encode_value,
)
from sidecar.protocol.assemble import ExplainContextParams, ExplainContextResult
from sidecar.protocol.base import ABSENT, ProgressToken, ToolDefinition
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
from sidecar.protocol.engine import (
    CallToolsParams,
    CallToolsResult,
    DoctorEngineParams,
    DoctorEngineResult,
    EngineListing,
    ListEngineParams,
    ListEngineResult,
    ListToolsParams,
    ListToolsResult,
)
from sidecar.protocol.memory import (
    CompileMemoryParams,
    CompileMemoryResult,
    RegisterMemoryParams,
    RegisterMemoryResult,
    UnregisterMemoryParams,
    UnregisterMemoryResult,
)
from sidecar.protocol.session import (
    ConfigureSessionParams,
    ConfigureSessionResult,
    DeleteSessionParams,
    DeleteSessionResult,
    EndedSubagentParams,
    EndedSubagentResult,
    ForkSessionParams,
    ForkSessionResult,
    GetSessionParams,
    GetSessionResult,
    Pin,
    PinSessionParams,
    PinSessionResult,
    PinsSessionParams,
    PinsSessionResult,
    PrepareSpawnSubagentParams,
    PrepareSpawnSubagentResult,
    RollbackSpawnSubagentParams,
    RollbackSpawnSubagentResult,
    SummariesSessionParams,
    SummariesSessionResult,
    SummaryNode,
    TruncateSessionParams,
    TruncateSessionResult,
    UnpinSessionParams,
    UnpinSessionResult,
)

T = TypeVar("T")


class AboutSession(TypedDict, total=False):
    """Optional arguments of every request about a session."""

    session_key: str
    """Alias of the session."""
    agent_id: str
    """Owner of the session."""
    work_done_token: ProgressToken
    """Token under which progress is reported."""


class Requests:
    """A method for each request. `sidecar.protocol` documents params and results, `client.errors` errors."""

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_s: float | None = None
    ) -> T:
        """Send any request; `timeout_s` is in seconds, by default the client's own, 0 means no limit."""
        raise NotImplementedError

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
        """Imports the new messages of the host's transcript.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = BootstrapContextParams(
            session_id=session_id,
            messages=None if messages is None else encode_messages(messages),
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
        """Stores one message.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
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
        """Stores several messages, all or none.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = IngestBatchContextParams(
            session_id=session_id,
            messages=encode_messages(messages),
            message_ids=None if message_ids is None else list(message_ids),
            is_heartbeat=is_heartbeat,
            **about,
        )
        return await self.request("context/ingestBatch", params, IngestBatchContextResult)

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
        """Makes the context smaller.

        Raises: HostCapabilityMissing, SessionNotFound, EngineFailed, StoreUnavailable.
        """
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
        usage: Mapping[str, object] | bytes | None = None,
        is_heartbeat: bool | None = None,
        auto_compaction_summary: str | None = None,
        **about: Unpack[AboutSession],
    ) -> None:
        """Reports the end of a turn and its messages.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = AfterTurnContextParams(
            session_id=session_id,
            messages=None if messages is None else encode_messages(messages),
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
        """Stores a turn exactly once.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = CommitTurnContextParams(
            session_id=session_id,
            advancement_key=advancement_key,
            messages=encode_messages(messages),
            is_heartbeat=is_heartbeat,
            admission=ABSENT if admission is None else encode_value(admission),
            terminal=ABSENT if terminal is None else encode_value(terminal),
            **about,
        )
        return await self.request("context/commitTurn", params, CommitTurnContextResult)

    async def maintain(
        self, session_id: str, token_budget: int | None = None, **about: Unpack[AboutSession]
    ) -> MaintainContextResult:
        """Lets the engine tidy up between turns.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
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
        """Checks whether the context fits before the model is called.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = PreflightContextParams(
            session_id=session_id,
            token_budget=token_budget,
            messages=None if messages is None else encode_messages(messages),
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
        """Explains what the model saw, and why.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = ExplainContextParams(session_id=session_id, result_id=result_id, turn_id=turn_id, **about)
        return await self.request("context/explain", params, ExplainContextResult)

    async def dispose(self, *, work_done_token: int | str | None = None) -> None:
        """Flushes and releases the engine.

        Raises: EngineFailed, StoreUnavailable.
        """
        params = DisposeContextParams(work_done_token=work_done_token)
        await self.request("context/dispose", params, DisposeContextResult)

    async def prepare_spawn(
        self,
        parent_session_key: str,
        child_session_key: str,
        context_mode: Literal["fork", "isolated"],
        *,
        parent_session_id: str | None = None,
        child_session_id: str | None = None,
        parent_session_file: str | None = None,
        child_session_file: str | None = None,
        agent_id: str | None = None,
        child_agent_id: str | None = None,
        ttl_ms: int | None = None,
        work_done_token: int | str | None = None,
    ) -> str | None:
        """Prepares the context of a child session.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = PrepareSpawnSubagentParams(
            parent_session_key=parent_session_key,
            child_session_key=child_session_key,
            context_mode=context_mode,
            parent_session_id=parent_session_id,
            child_session_id=child_session_id,
            parent_session_file=parent_session_file,
            child_session_file=child_session_file,
            agent_id=agent_id,
            child_agent_id=child_agent_id,
            ttl_ms=ttl_ms,
            work_done_token=work_done_token,
        )
        return (
            await self.request("subagent/prepareSpawn", params, PrepareSpawnSubagentResult)
        ).preparation_id

    async def rollback_spawn(
        self, preparation_id: str, *, agent_id: str | None = None, work_done_token: int | str | None = None
    ) -> bool:
        """Rolls back a preparation.

        Raises: EngineFailed, StoreUnavailable.
        """
        params = RollbackSpawnSubagentParams(
            preparation_id=preparation_id, agent_id=agent_id, work_done_token=work_done_token
        )
        return (await self.request("subagent/rollbackSpawn", params, RollbackSpawnSubagentResult)).rolled_back

    async def subagent_ended(
        self,
        child_session_key: str,
        reason: Literal["deleted", "completed", "swept", "released"],
        *,
        agent_id: str | None = None,
        work_done_token: int | str | None = None,
    ) -> None:
        """Reports the end of a child session.

        Raises: EngineFailed, StoreUnavailable.
        """
        params = EndedSubagentParams(
            child_session_key=child_session_key,
            reason=reason,
            agent_id=agent_id,
            work_done_token=work_done_token,
        )
        await self.request("subagent/ended", params, EndedSubagentResult)

    async def tools(
        self, session_id: str | None = None, *, agent_id: str | None = None
    ) -> list[ToolDefinition]:
        """Describes the tools that the engine offers to the model.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = ListToolsParams(session_id=session_id, agent_id=agent_id)
        return (await self.request("tools/list", params, ListToolsResult)).tools

    async def call_tool(
        self,
        session_id: str,
        name: str,
        arguments: Mapping[str, object] | bytes | None = None,
        **about: Unpack[AboutSession],
    ) -> CallToolsResult:
        """Runs one of the tools.

        Raises: SessionNotFound, EngineFailed, StoreUnavailable.
        """
        params = CallToolsParams(
            session_id=session_id,
            name=name,
            arguments=ABSENT if arguments is None else encode_object(arguments),
            **about,
        )
        return await self.request("tools/call", params, CallToolsResult)

    async def register_memory(
        self,
        name: str,
        injection_points: Iterable[Literal["session-start", "per-message"]],
        *,
        token_budget: int | None = None,
    ) -> bool:
        """Offers the host as a memory source.

        Raises: HostCapabilityMissing.
        """
        params = RegisterMemoryParams(
            name=name, injection_points=list(injection_points), token_budget=token_budget
        )
        return (await self.request("memory/register", params, RegisterMemoryResult)).registered

    async def unregister_memory(self, name: str) -> bool:
        """Withdraws a memory source."""
        params = UnregisterMemoryParams(name=name)
        return (await self.request("memory/unregister", params, UnregisterMemoryResult)).unregistered

    async def compile_memory(
        self,
        agent_id: str,
        injection_point: Literal["session-start", "per-message"],
        *,
        session_id: str | None = None,
        prompt: str | None = None,
        token_budget: int | None = None,
        work_done_token: int | str | None = None,
    ) -> CompileMemoryResult:
        """Asks all memory sources and composes one text.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = CompileMemoryParams(
            agent_id=agent_id,
            injection_point=injection_point,
            session_id=session_id,
            prompt=prompt,
            token_budget=token_budget,
            work_done_token=work_done_token,
        )
        return await self.request("memory/compile", params, CompileMemoryResult)

    async def engines(self) -> list[EngineListing]:
        """Lists the engines that the server knows."""
        params = ListEngineParams()
        return (await self.request("engine/list", params, ListEngineResult)).engines

    async def doctor(self, *, work_done_token: int | str | None = None) -> DoctorEngineResult:
        """Finds problems and says how to fix them."""
        params = DoctorEngineParams(work_done_token=work_done_token)
        return await self.request("engine/doctor", params, DoctorEngineResult)

    async def configure(
        self,
        session_id: str | None = None,
        *,
        agent_id: str | None = None,
        engine: str | None = None,
        config: Mapping[str, object] | bytes | None = None,
    ) -> ConfigureSessionResult:
        """Selects engine and settings for a session or an agent.

        Raises: EngineUnavailable, SessionNotFound, StoreUnavailable.
        """
        params = ConfigureSessionParams(
            session_id=session_id,
            agent_id=agent_id,
            engine=engine,
            config=ABSENT if config is None else encode_object(config),
        )
        return await self.request("session/configure", params, ConfigureSessionResult)

    async def pin(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        text: str | None = None,
        note: str | None = None,
        **about: Unpack[AboutSession],
    ) -> str:
        """Keeps a message or a text through every compaction.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = PinSessionParams(session_id=session_id, message_id=message_id, text=text, note=note, **about)
        return (await self.request("session/pin", params, PinSessionResult)).pin_id

    async def unpin(self, session_id: str, pin_id: str, **about: Unpack[AboutSession]) -> bool:
        """Removes a pin.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = UnpinSessionParams(session_id=session_id, pin_id=pin_id, **about)
        return (await self.request("session/unpin", params, UnpinSessionResult)).unpinned

    async def pins(self, session_id: str, **about: Unpack[AboutSession]) -> list[Pin]:
        """Lists the pins.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = PinsSessionParams(session_id=session_id, **about)
        return (await self.request("session/pins", params, PinsSessionResult)).pins

    async def truncate(
        self, session_id: str, after_message_id: str, **about: Unpack[AboutSession]
    ) -> TruncateSessionResult:
        """Removes everything after a message.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = TruncateSessionParams(session_id=session_id, after_message_id=after_message_id, **about)
        return await self.request("session/truncate", params, TruncateSessionResult)

    async def fork(
        self,
        session_id: str,
        new_session_id: str,
        *,
        at_message_id: str | None = None,
        **about: Unpack[AboutSession],
    ) -> ForkSessionResult:
        """Copies a session under a new id.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = ForkSessionParams(
            session_id=session_id, new_session_id=new_session_id, at_message_id=at_message_id, **about
        )
        return await self.request("session/fork", params, ForkSessionResult)

    async def summaries(self, session_id: str, **about: Unpack[AboutSession]) -> list[SummaryNode]:
        """Lists the summaries in force.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = SummariesSessionParams(session_id=session_id, **about)
        return (await self.request("session/summaries", params, SummariesSessionResult)).summaries

    async def session(self, session_id: str, **about: Unpack[AboutSession]) -> GetSessionResult:
        """Returns the key facts of one session.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = GetSessionParams(session_id=session_id, **about)
        return await self.request("session/get", params, GetSessionResult)

    async def delete(self, session_id: str, **about: Unpack[AboutSession]) -> bool:
        """Erases a session.

        Raises: SessionNotFound, StoreUnavailable.
        """
        params = DeleteSessionParams(session_id=session_id, **about)
        return (await self.request("session/delete", params, DeleteSessionResult)).deleted
