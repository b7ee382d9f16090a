"""The memory sources of a connection: the configured ones and the host's own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast

from msgspec import json

from sidecar.memory.contract import Fragment, InjectionPoint, MemoryRequest, SourceUnavailable
from sidecar.memory.coordinator import Asked
from sidecar.protocol.memory import GetContextMemoryParams, GetContextMemoryResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.memory.contract import EpisodeSearch
    from sidecar.rpc.peer import Peer
    from sidecar.server.background.episodes import EpisodeTurns
    from sidecar.server.configuration.settings import Settings
    from sidecar.server.profile import Host
    from sidecar.server.sessions.live import LiveSession
    from sidecar.store.buffer import BufferStore, HoldsBuffers
    from sidecar.store.contract import SessionStore
    from sidecar.store.search import SearchableStore, SessionSearch
    from sidecar.tokens.contract import TokenCounter


T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")

LOOKED_AT = 8
"""Messages at the beginning of an answer among which is the first that is no system message."""
P = ParamSpec("P")

_log = logging.getLogger(__name__)


class HostSource:
    """Asks the host by `memory/getContext`."""

    def __init__(self, name: str, points: Sequence[InjectionPoint], peer: Peer, limit_ms: int) -> None:
        self.name = name
        self.injection_points = points
        self._peer = peer
        self._limit_ms = limit_ms

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """As `MemorySource.get_context`.

        Raises:
            RpcError: the host answers with an error, or not in time.
        """
        params = GetContextMemoryParams(
            name=self.name,
            agent_id=request.agent_id,
            injection_point=request.injection_point,
            session_id=request.session_id,
            session_key=request.session_key,
            prompt=request.prompt,
        )
        answer = await self._peer.request(
            "memory/getContext", params, GetContextMemoryResult, timeout_ms=self._limit_ms
        )
        return [
            Fragment(
                id=fragment.id,
                content=fragment.content,
                tokens=fragment.tokens,
                priority=fragment.priority,
                label=fragment.label,
                synthesize=fragment.synthesize is not False,
            )
            for fragment in answer.fragments
        ]


class SourceParts(NamedTuple):
    """What sources of a connection work with."""

    host: Host
    store: SessionStore
    searching: SessionSearch
    episodes: EpisodeTurns
    counter: TokenCounter
    cached: Callable[[str], LiveSession | None]
    """A session, if it is held in memory."""


class ServerSourceHost:
    """See `sidecar.memory.contract.SourceHost`."""

    def __init__(self, parts: SourceParts, source_id: str, config: Mapping[str, Any]) -> None:
        self._parts = parts
        self._source_id = source_id
        self._config = config

    @property
    def namespace(self) -> str:
        """The namespace of the host's sessions."""
        return self._parts.host.namespace

    @property
    def store(self) -> SearchableStore:
        """The stored sessions."""
        return cast("SearchableStore", self._parts.store)

    @property
    def searching(self) -> SessionSearch:
        """Finds in the stored sessions, by meaning too where that is at hand."""
        return self._parts.searching

    def buffer(self, name: str) -> BufferStore:
        """A durable buffer and set of ids of the source's own."""
        from sidecar.store import open_buffer

        return open_buffer(cast("HoldsBuffers", self._parts.store), self.namespace, name)

    def settings(self, model: type[M]) -> M:
        """The source's settings as its own model.

        Raises:
            SourceUnavailable: they do not fit.
        """
        from pydantic import ValidationError

        try:
            return model.model_validate_json(json.encode(self._config), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, ("plugins.entries", self._source_id, "config", *first["loc"])))
            raise SourceUnavailable(f"{where}: {first['msg']}") from None

    @property
    def episodes(self) -> EpisodeSearch | None:
        """The back end of episodes."""
        outbox = self._parts.episodes.outbox
        return outbox.courier.backend if outbox is not None else None

    async def is_in_context(self, session_id: str, message_id: str) -> bool:
        """Whether the message is not older than what the newest answer began with."""
        parts = self._parts
        live = parts.cached(session_id)
        newest = live.results.newest_of(None) if live is not None else None
        if newest is None:
            return True
        sent = (each for each in newest.record.sent.values() if each.verdict == "sent")
        for decision in islice(sent, LOOKED_AT):
            first = await parts.store.message(parts.host.ref(session_id), decision.message_id)
            if first is not None and first.role != "system":
                said = await parts.store.message(parts.host.ref(session_id), message_id)
                return said is None or said.position >= first.position
        return True

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._parts.counter.count(text)

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of blocking work, done in a worker thread."""
        return await asyncio.to_thread(work, *args, **kwargs)


class SourceList:
    """Configured sources first, in the order of the slot, then those of the host as they were registered."""

    def __init__(self, parts: SourceParts, settings: Settings) -> None:
        self._parts = parts
        self._settings = settings
        self._configured: list[Asked] | None = None
        self._registered: dict[str, Asked] = {}
        self._problems: dict[str, str] = {}

    def register(self, name: str, points: Sequence[InjectionPoint], token_budget: int | None) -> None:
        """Ask the host too; the same name replaces an earlier registration."""
        settings = self._settings.memory
        source = HostSource(name, points, self._parts.host.peer, settings.source_timeout_ms)
        self._registered[name] = Asked(source, token_budget)

    def unregister(self, name: str) -> bool:
        """Ask the host no longer; false where it was not asked."""
        return self._registered.pop(name, None) is not None

    def at(self, point: InjectionPoint) -> list[Asked]:
        """The sources that want to be asked at this point."""
        known = [*self._loaded(), *self._registered.values()]
        return [asked for asked in known if point in asked.source.injection_points]

    def problems(self) -> dict[str, str]:
        """Why sources that are configured cannot be asked, by their ids."""
        self._loaded()
        return self._problems

    def _loaded(self) -> list[Asked]:
        """The configured sources; one that cannot be loaded is told of in the log, and left out."""
        if self._configured is None:
            self._configured = []
            for source_id in self._settings.memory.sources:
                asked = self._load(source_id)
                if asked is not None:
                    self._configured.append(asked)
        return self._configured

    def _load(self, source_id: str) -> Asked | None:
        from sidecar.memory.contract import SourceUnavailable
        from sidecar.memory.coordinator import load_source

        entry = self._settings.entry(source_id)
        if not entry.enabled:
            return None
        try:
            host = ServerSourceHost(self._parts, source_id, entry.config)
            return load_source(source_id, host, entry.config)
        except SourceUnavailable as error:
            why = f" ({error.__cause__})" if error.__cause__ else ""
            _log.error("memory source %s: %s%s", source_id, error, why)
            self._problems[source_id] = str(error)
            return None
