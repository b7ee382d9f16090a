"""The queues that a request belongs to: that of its session, or those of all sessions that it is about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

REMEMBERED = 10_000
"""Session keys, and preparations, whose session is remembered."""
AGENTS_OF_A_KEY = 100
"""Agents whose sessions are remembered of one key."""

_KEY = "\0key "
"""Begins the lane of a key; ids of sessions have no NUL."""


class OfSession(Protocol):
    """Params that name a session."""

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        ...


class OfKeyedSession(OfSession, Protocol):
    """Params that name a session, perhaps with its alias."""

    @property
    def session_key(self) -> str | None:
        """The host's alias of the session."""
        ...

    @property
    def agent_id(self) -> str | None:
        """The agent whose alias it is."""
        ...


class OfImport(OfKeyedSession, Protocol):
    """Params of an import."""

    @property
    def background(self) -> bool | None:
        """Whether the session goes on meanwhile."""
        ...


def import_lane(session_id: str) -> str:
    """The lane that an import in the background keeps until it is over."""
    return f"\0import {session_id}"


def session_lane(params: OfSession) -> str:
    """Requests of one session take effect in the order received."""
    return params.session_id


class SessionLanes:
    """Knows which sessions the requests on the way are about, also where they name them by key alone.

    `in_use` tells whether any request on the way is in the lane of that name.
    """

    def __init__(self, in_use: Callable[[str], bool]) -> None:
        self._in_use = in_use
        self._sessions: OrderedDict[str, dict[str | None, str]] = OrderedDict()
        self._preparations: OrderedDict[str, Sequence[str]] = OrderedDict()

    def in_use(self, session_id: str) -> bool:
        """Whether any request of the session is on the way."""
        return self._in_use(session_id)

    def of(self, params: OfKeyedSession) -> str | Sequence[str]:
        """The lane of a session; also that of its key while something is being done about the key."""
        key, session_id = params.session_key, params.session_id
        if key is None:
            return session_id
        known = self._sessions
        if (bound := known.get(key)) is None:
            bound = known[key] = {}
            if len(known) > REMEMBERED:
                known.popitem(last=False)
        if bound.get(params.agent_id) != session_id:
            if len(bound) > AGENTS_OF_A_KEY:
                bound.clear()
            bound[params.agent_id] = session_id
        return (session_id, _KEY + key) if self._in_use(_KEY + key) else session_id

    def storing(self, params: OfKeyedSession) -> str | Sequence[str]:
        """The lanes of a request that stores or removes messages: it waits for an import of the session."""
        lanes, importing = self.of(params), import_lane(params.session_id)
        if not self._in_use(importing):
            return lanes
        return (lanes, importing) if isinstance(lanes, str) else (*lanes, importing)

    def importing(self, params: OfImport) -> str | Sequence[str]:
        """The lanes of an import: only its own is kept where it runs in the background."""
        lanes = self.storing(params)
        if not params.background:
            return lanes
        all_of_them = (lanes,) if isinstance(lanes, str) else lanes
        return list(dict.fromkeys((*all_of_them, import_lane(params.session_id))))

    def changing(self, *session_ids: str) -> str | Sequence[str]:
        """The lanes of a request that changes these sessions by their ids."""
        own = list(dict.fromkeys(session_ids))
        lanes = [*own, *filter(self._in_use, map(import_lane, own))]
        return lanes[0] if len(lanes) == 1 else lanes

    def of_key(
        self,
        session_key: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        *,
        agents_own: bool = False,
    ) -> list[str]:
        """The lanes of a session that is named by its key: with `agents_own`, by an agent for itself."""
        if session_id is not None:
            return [_KEY + session_key, session_id]
        bound = self._sessions.get(session_key, {})
        if agents_own and agent_id is not None:
            bound = {agent: bound[agent] for agent in (agent_id, None) if agent in bound}
        return list(dict.fromkeys((_KEY + session_key, *bound.values())))

    def note_preparation(self, preparation_id: str, lanes: Sequence[str]) -> None:
        """Take note of the lanes that a preparation is about."""
        self._preparations[preparation_id] = lanes
        if len(self._preparations) > REMEMBERED:
            self._preparations.popitem(last=False)

    def of_preparation(self, preparation_id: str) -> list[str]:
        """The lanes that a preparation is about, one of its own where it is unknown."""
        lanes = self._preparations.get(preparation_id, (f"{_KEY}{preparation_id}",))
        keys = [lane.removeprefix(_KEY) for lane in lanes]
        now = [session_id for key in keys for session_id in self._sessions.get(key, {}).values()]
        return list(dict.fromkeys((*lanes, *now)))
