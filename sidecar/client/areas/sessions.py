"""The `session/*` requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Unpack

from msgspec import Raw

from sidecar.client.answers import ExportedPage, StoredMessage
from sidecar.client.areas.requesting import AboutSession, Requesting
from sidecar.client.message_bytes import encode_object
from sidecar.protocol.base import ABSENT
from sidecar.protocol.session import (
    ConfigureSessionParams,
    ConfigureSessionResult,
    DeleteSessionParams,
    DeleteSessionResult,
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
