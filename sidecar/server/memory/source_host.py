"""What a memory source may use of the sidecar."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from sidecar.memory.contract import SourceUnavailable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.memory.contract import EpisodeSearch
    from sidecar.server.sidecar import Sidecar
    from sidecar.store.buffer import BufferStore
    from sidecar.store.buffering import HoldsBuffers
    from sidecar.store.search import SearchableStore, SessionSearch

LOOKED_AT = 8
"""Messages at the beginning of an answer among which is the first that is no system message."""

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")


class ServerSourceHost:
    """See `sidecar.memory.contract.SourceHost`."""

    def __init__(self, sidecar: Sidecar, source_id: str, config: Mapping[str, Any]) -> None:
        self._sidecar = sidecar
        self._source_id = source_id
        self._config = config

    @property
    def namespace(self) -> str:
        """The namespace of the host's sessions."""
        return self._sidecar.profile.namespace

    @property
    def store(self) -> SearchableStore:
        """The stored sessions."""
        return cast("SearchableStore", self._sidecar.store)

    @property
    def searching(self) -> SessionSearch:
        """Finds in the stored sessions, by meaning too where that is at hand."""
        return self._sidecar.searching

    def buffer(self, name: str) -> BufferStore:
        """A durable buffer and set of ids of the source's own."""
        from sidecar.store import open_buffer

        return open_buffer(cast("HoldsBuffers", self._sidecar.store), self.namespace, name)

    def settings(self, model: type[M]) -> M:
        """The source's settings as its own model.

        Raises:
            SourceUnavailable: they do not fit.
        """
        from pydantic import ValidationError

        try:
            return model.model_validate(self._config)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, ("plugins.entries", self._source_id, "config", *first["loc"])))
            raise SourceUnavailable(f"{where}: {first['msg']}") from None

    @property
    def episodes(self) -> EpisodeSearch | None:
        """The back end of episodes."""
        desk = self._sidecar.episodes.desk
        return desk.courier.backend if desk is not None else None

    async def is_in_context(self, session_id: str, message_id: str) -> bool:
        """Whether the message is not older than what the newest answer began with."""
        sidecar = self._sidecar
        live = sidecar.sessions.cached(session_id)
        newest = live.results.newest_of(None) if live is not None else None
        if newest is None:
            return True
        sent = (each for each in newest.record.sent.values() if each.verdict == "sent")
        for decision in islice(sent, LOOKED_AT):
            first = await sidecar.store.message(sidecar.ref(session_id), decision.message_id)
            if first is not None and first.role != "system":
                said = await sidecar.store.message(sidecar.ref(session_id), message_id)
                return said is None or said.position >= first.position
        return True

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._sidecar.counter.count(text)

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of blocking work, done in a worker thread."""
        return await asyncio.to_thread(work, *args, **kwargs)
