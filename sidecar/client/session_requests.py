"""The requests of the client about sessions, spawned sessions, memory, tools and engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Unpack

from msgspec import Raw

from sidecar.client.answers import ExportedPage, StoredMessage
from sidecar.client.context_requests import AboutSession, Requesting
from sidecar.client.message_bytes import encode_object
from sidecar.protocol.base import ABSENT, InjectionPoint, ToolDefinition
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
    ExportSessionParams,
    ForkSessionParams,
    ForkSessionResult,
    GetSessionParams,
    GetSessionResult,
    ListSessionParams,
    ListSessionResult,
    Pin,
    PinSessionParams,
    PinSessionResult,
    PinsSessionParams,
    PinsSessionResult,
    PrepareSpawnSubagentParams,
    PrepareSpawnSubagentResult,
    RollbackSpawnSubagentParams,
    RollbackSpawnSubagentResult,
    SessionEntry,
    SummariesSessionParams,
    SummariesSessionResult,
    SummaryNode,
    TruncateSessionParams,
    TruncateSessionResult,
    UnpinSessionParams,
    UnpinSessionResult,
)


class SessionRequests(Requesting):
    """Looking at stored sessions, and changing them."""

    async def configure(
        self,
        session_id: str | None = None,
        *,
        agent_id: str | None = None,
        engine: str | None = None,
        config: Mapping[str, object] | None = None,
    ) -> ConfigureSessionResult:
        """Select engine and settings for a session or an agent, durably."""
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
        """Keep a message or a text through every compaction; answers with what to unpin by."""
        params = PinSessionParams(session_id=session_id, message_id=message_id, text=text, note=note, **about)
        return (await self.request("session/pin", params, PinSessionResult)).pin_id

    async def unpin(self, session_id: str, pin_id: str, **about: Unpack[AboutSession]) -> bool:
        """Take a pin off; false where there is no such pin."""
        params = UnpinSessionParams(session_id=session_id, pin_id=pin_id, **about)
        return (await self.request("session/unpin", params, UnpinSessionResult)).unpinned

    async def pins(self, session_id: str, **about: Unpack[AboutSession]) -> list[Pin]:
        """Every pin of the session, oldest first."""
        params = PinsSessionParams(session_id=session_id, **about)
        return (await self.request("session/pins", params, PinsSessionResult)).pins

    async def truncate(
        self, session_id: str, after_message_id: str, **about: Unpack[AboutSession]
    ) -> TruncateSessionResult:
        """Remove what came after a message, which stays."""
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
        """Copy a session under a new id, up to `at_message_id` where it is given."""
        params = ForkSessionParams(
            session_id=session_id, new_session_id=new_session_id, at_message_id=at_message_id, **about
        )
        return await self.request("session/fork", params, ForkSessionResult)

    async def summaries(self, session_id: str, **about: Unpack[AboutSession]) -> list[SummaryNode]:
        """Every summary that is in force."""
        params = SummariesSessionParams(session_id=session_id, **about)
        return (await self.request("session/summaries", params, SummariesSessionResult)).summaries

    async def receipts(self, session_id: str, **about: Unpack[AboutSession]) -> list[Raw]:
        """What the newest compactions did, oldest first: JSON objects."""
        params = SummariesSessionParams(session_id=session_id, **about)
        return (await self.request("session/summaries", params, SummariesSessionResult)).receipts or []

    async def sessions(
        self, *, agent_id: str | None = None, page_size: int | None = None
    ) -> AsyncIterator[SessionEntry]:
        """The sessions of the namespace, latest change first, asked for page by page."""
        cursor: str | None = None
        while True:
            params = ListSessionParams(limit=page_size, cursor=cursor, agent_id=agent_id)
            page = await self.request("session/list", params, ListSessionResult)
            for entry in page.sessions:
                yield entry
            cursor = page.next_cursor
            if cursor is None:
                return

    async def session(self, session_id: str, **about: Unpack[AboutSession]) -> GetSessionResult:
        """The short facts of one session.

        Raises:
            SessionNotFound: there is no such session.
        """
        params = GetSessionParams(session_id=session_id, **about)
        return await self.request("session/get", params, GetSessionResult)

    async def export(self, session_id: str, **about: Unpack[AboutSession]) -> AsyncIterator[ExportedPage]:
        """The stored messages page by page, oldest first, byte for byte.

        Raises:
            SessionNotFound: there is no such session.
        """
        cursor: str | None = None
        while True:
            params = ExportSessionParams(session_id=session_id, cursor=cursor, **about)
            page = await self.request("session/export", params, ExportedPage)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    async def stored_messages(
        self, session_id: str, **about: Unpack[AboutSession]
    ) -> AsyncIterator[StoredMessage]:
        """The stored messages one by one, as `export` gives them."""
        async for page in self.export(session_id, **about):
            for message in page.messages:
                yield message

    async def delete(self, session_id: str, **about: Unpack[AboutSession]) -> bool:
        """Erase a session; false where there was none."""
        params = DeleteSessionParams(session_id=session_id, **about)
        return (await self.request("session/delete", params, DeleteSessionResult)).deleted


class SubagentRequests(Requesting):
    """Contexts of child sessions."""

    async def prepare_spawn(
        self,
        parent_session_key: str,
        child_session_key: str,
        context_mode: Literal["isolated", "fork"],
        *,
        parent_session_id: str | None = None,
        child_session_id: str | None = None,
        agent_id: str | None = None,
        child_agent_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> str | None:
        """Prepare a child's context; answers with what to roll back by.

        `agent_id` is the parent's; the child belongs to `child_agent_id`, or else to the same one.

        Raises:
            SessionNotFound: the parent of a fork is unknown, or the child's id is another agent's.
        """
        params = PrepareSpawnSubagentParams(
            parent_session_key=parent_session_key,
            child_session_key=child_session_key,
            context_mode=context_mode,
            parent_session_id=parent_session_id,
            child_session_id=child_session_id,
            agent_id=agent_id,
            child_agent_id=child_agent_id,
            ttl_ms=ttl_ms,
        )
        return (
            await self.request("subagent/prepareSpawn", params, PrepareSpawnSubagentResult)
        ).preparation_id

    async def rollback_spawn(self, preparation_id: str, *, agent_id: str | None = None) -> bool:
        """Take a preparation back; false where it is unknown, or the child has stored something."""
        params = RollbackSpawnSubagentParams(preparation_id=preparation_id, agent_id=agent_id)
        return (await self.request("subagent/rollbackSpawn", params, RollbackSpawnSubagentResult)).rolled_back

    async def subagent_ended(
        self,
        child_session_key: str,
        reason: Literal["deleted", "completed", "swept", "released"],
        *,
        agent_id: str | None = None,
    ) -> None:
        """Tell that a child of the agent has ended; `deleted` erases what the child has stored."""
        params = EndedSubagentParams(child_session_key=child_session_key, reason=reason, agent_id=agent_id)
        await self.request("subagent/ended", params, EndedSubagentResult)


class MemoryRequests(Requesting):
    """Memory sources of the host, and what is made of them."""

    async def register_memory(
        self, name: str, injection_points: Iterable[InjectionPoint], *, token_budget: int | None = None
    ) -> bool:
        """Offer a source, which `on_memory_context` answers for as long as the connection lives."""
        params = RegisterMemoryParams(
            name=name, injection_points=list(injection_points), token_budget=token_budget
        )
        return (await self.request("memory/register", params, RegisterMemoryResult)).registered

    async def unregister_memory(self, name: str) -> bool:
        """Withdraw a source; false where there was none of this name."""
        params = UnregisterMemoryParams(name=name)
        return (await self.request("memory/unregister", params, UnregisterMemoryResult)).unregistered

    async def compile_memory(
        self,
        agent_id: str,
        injection_point: InjectionPoint,
        *,
        session_id: str | None = None,
        prompt: str | None = None,
        token_budget: int | None = None,
    ) -> CompileMemoryResult:
        """Ask all sources, and get one text within the budget."""
        params = CompileMemoryParams(
            agent_id=agent_id,
            injection_point=injection_point,
            session_id=session_id,
            prompt=prompt,
            token_budget=token_budget,
        )
        return await self.request("memory/compile", params, CompileMemoryResult)


class ToolRequests(Requesting):
    """Tools that the host may offer to its model."""

    async def tools(
        self, session_id: str | None = None, *, agent_id: str | None = None
    ) -> list[ToolDefinition]:
        """The tools of the session's engine, or of the connection's."""
        params = ListToolsParams(session_id=session_id, agent_id=agent_id)
        return (await self.request("tools/list", params, ListToolsResult)).tools

    async def call_tool(
        self,
        session_id: str,
        name: str,
        arguments: Mapping[str, object] | bytes | None = None,
        **about: Unpack[AboutSession],
    ) -> CallToolsResult:
        """Run a tool; `arguments` may be the JSON that a model wrote.

        Raises:
            InvalidParams: there is no such tool, or the arguments do not fit its schema.
        """
        params = CallToolsParams(
            session_id=session_id,
            name=name,
            arguments=ABSENT if arguments is None else encode_object(arguments),
            **about,
        )
        return await self.request("tools/call", params, CallToolsResult)


class EngineRequests(Requesting):
    """Engines that are installed, and their health."""

    async def engines(self) -> list[EngineListing]:
        """Every engine that the sidecar knows."""
        return (await self.request("engine/list", ListEngineParams(), ListEngineResult)).engines

    async def doctor(self) -> DoctorEngineResult:
        """What is wrong, and what to do about it."""
        return await self.request("engine/doctor", DoctorEngineParams(), DoctorEngineResult)
