"""What a back end for episodes is handed, what it answers, and what it can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from sidecar.store.buffer import Episode


class EpisodeMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one message said."""

    message_id: str
    role: str
    timestamp: str
    """RFC 3339."""
    text: str
    """Visible text, calls and results; what was injected by us is left out."""


class EpisodePayload(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One turn as back ends get it, as JSON; the same turn always gives the same bytes."""

    key: str
    """The same for every delivery of this episode, and for no other one."""
    type: str
    """`episode`."""
    version: int
    namespace: str
    session_id: str
    turn_id: str
    started_at: str
    """When its first message was sent, RFC 3339."""
    ended_at: str
    messages: list[EpisodeMessage]
    session_key: str | None = None
    agent_id: str
    """Whose memory this is; `default` where the host names no agent."""


class EpisodeHead(Struct, frozen=True, rename="camel"):
    """What the sidecar itself reads of a payload that it made before."""

    key: str
    namespace: str = ""
    session_id: str = ""
    agent_id: str | None = None


class Delivered(NamedTuple):
    """What became of episodes that were handed over."""

    taken: Sequence[int]
    """Row ids that the back end has; they need not be kept any longer."""
    refused: Sequence[int] = ()
    """Row ids that it will never take as they are; they are kept, and offered again after a restart."""
    problem: str = ""
    """Why the others were not taken, without bodies or secrets; empty where there is none."""
    pause_s: float = 0.0
    """How long the back end wants to be left alone, in seconds; 0 where it says nothing of it."""


class Remembered(NamedTuple):
    """Something that a back end has found."""

    id: str
    text: str
    score: float
    session_id: str = ""
    """Where it was said, and by which message; empty where the back end does not tell."""
    message_id: str = ""
    role: str = ""
    timestamp: str = ""


class EpisodeBackend(Protocol):
    """Takes episodes, at least once each; the key tells a repetition."""

    name: str
    """For the log and the doctor."""
    batch: int
    """How many episodes are handed over at once."""

    @property
    def limit_s(self) -> float:
        """Longest time that one delivery takes, in seconds, tries and pauses included."""
        ...

    async def deliver(self, episodes: Sequence[Episode]) -> Delivered:
        """Hand over episodes, oldest first; never raises for a fault of the other side."""
        ...

    async def forget(self, namespace: str, session_id: str) -> None:
        """Erase what was taken of a session, where that can be done."""
        ...

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """What was taken of an agent and matches best, best first."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
