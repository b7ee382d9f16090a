"""Episodes: turns composed for a back end, the contract of back ends, and how earlier episodes are ranked."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports before the first answer combined.
from _blake2 import blake2b
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from math import log
from typing import NamedTuple, Protocol

from msgspec import Struct, json

from sidecar.messages.contract import Dialect, MessageError
from sidecar.messages.text import plain_text
from sidecar.store.buffer import Episode
from sidecar.store.search.terms import document_terms, question
from sidecar.store.stored import SessionHead, StoredMessage


class EpisodeMessage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The text of one message."""

    message_id: str
    role: str
    timestamp: str
    """RFC 3339."""
    text: str
    """Visible text, calls and results, without text injected by us."""


class EpisodePayload(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One turn in the JSON form for back ends; the same turn always gives the same bytes."""

    key: str
    """Unique to the episode, and the same for all its deliveries."""
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
    """Owner of the memory; `default` if the host names no agent."""


class EpisodeHead(Struct, frozen=True, rename="camel"):
    """The members that the sidecar itself reads from an earlier payload."""

    key: str
    namespace: str = ""
    session_id: str = ""
    agent_id: str | None = None


class Delivered(NamedTuple):
    """The outcome of a delivery."""

    taken: Sequence[int]
    """Row ids that the back end has; they can be deleted from the buffer."""
    refused: Sequence[int] = ()
    """Row ids that it refuses as they are; they stay buffered and are offered again after a restart."""
    problem: str = ""
    """Why the others were not taken, without bodies or secrets; empty if there are none."""
    pause_s: float = 0.0
    """Pause that the back end requests, in seconds; 0 if it requests none."""


class Remembered(NamedTuple):
    """A search result of a back end."""

    id: str
    text: str
    score: float
    session_id: str = ""
    """The session of the message, `message_id` its id; empty if the back end does not report them."""
    message_id: str = ""
    role: str = ""
    timestamp: str = ""


class EpisodeBackend(Protocol):
    """Receives episodes, each at least once; the key identifies repetitions."""

    name: str
    """For the log and the doctor."""
    batch: int
    """Maximum episodes per delivery."""

    @property
    def limit_s(self) -> float:
        """Maximum duration of one delivery in seconds, including tries and pauses."""
        ...

    async def deliver(self, episodes: Sequence[Episode]) -> Delivered:
        """Deliver episodes, oldest first; never raises for a fault of the back end."""
        ...

    async def forget(self, namespace: str, session_id: str) -> None:
        """Erase the episodes of a session, if possible."""
        ...

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """The best matches among the agent's episodes, best first."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


VERSION = 1
LONGEST_TEXT = 16_000
"""Maximum characters of one message in an episode; the store has all of it."""
LONGEST_EPISODE = 400_000
"""Approximate maximum characters of one episode."""


NAMELESS = "default"
"""The agent id of sessions whose host names none, as used by memory sources."""


def compose(head: SessionHead, messages: Sequence[StoredMessage], dialect: Dialect) -> bytes | None:
    """The payload for consecutive messages of one turn; `None` if they have no text."""
    included: list[EpisodeMessage] = []
    room = LONGEST_EPISODE
    for message in messages:
        if message.heartbeat or message.role == "system":
            continue
        try:
            reading = dialect.read(message.body)
        except MessageError:
            continue
        text = "" if reading.mark is not None else _sound(plain_text(reading))
        if not text:
            continue
        text = _cut(text, max(min(LONGEST_TEXT, room), 200))
        room -= len(text)
        included.append(
            EpisodeMessage(
                message_id=_sound(message.message_id),
                role=message.role,
                timestamp=_rfc3339(message.timestamp_ms),
                text=text,
            )
        )
    if not included:
        return None
    first, last = messages[0], messages[-1]
    payload = EpisodePayload(
        key=_key(head, first, last),
        type="episode",
        version=VERSION,
        namespace=_sound(head.ref.namespace),
        session_id=_sound(head.ref.session_id),
        session_key=_sound(head.session_key) if head.session_key else None,
        agent_id=_sound(head.agent_id or NAMELESS),
        turn_id=_sound(first.turn_id),
        started_at=included[0].timestamp,
        ended_at=included[-1].timestamp,
        messages=included,
    )
    return json.encode(payload)


def _key(head: SessionHead, first: StoredMessage, last: StoredMessage) -> str:
    parts = (*head.ref, str(head.created_ms), first.turn_id, first.message_id, last.message_id)
    text = "\0".join(parts)
    return "ep_" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]}\n[... {len(text) - most} characters left out ...]\n{text[-most // 4 :]}"


def _sound(text: str) -> str:
    """The text without lone surrogates, which JSON in UTF-8 cannot represent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _rfc3339(ms: int) -> str:
    try:
        instant = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        instant = datetime.fromtimestamp(0, UTC)
    return f"{instant.isoformat(timespec='milliseconds')[:-6]}Z"


K1 = 1.2
B = 0.75
TERM = 6
"""Approximate characters per term, including its separator, for texts that are not tokenised."""


class Ranked:
    """Ranks texts, added one by one, by BM25."""

    def __init__(self, query: str) -> None:
        parsed = question(query)
        self._terms = frozenset((*parsed.required, *parsed.helpful))
        self._found: list[tuple[Remembered, dict[str, int], int]] = []
        self._having: Counter[str] = Counter()
        self._texts = 0
        self._length = 0

    def add(self, candidate: Remembered) -> None:
        """Add a candidate."""
        self._texts += 1
        folded = candidate.text.casefold()
        if not any(term in folded for term in self._terms):
            self._length += len(folded) // TERM
            return
        terms = document_terms(candidate.text)
        self._length += terms.length
        having = {term: terms.counts[term] for term in self._terms if term in terms.counts}
        if having:
            self._having.update(having.keys())
            self._found.append((candidate, having, terms.length))

    def best(self, limit: int) -> list[Remembered]:
        """The best candidates by BM25; among equals, those added last."""
        average = self._length / self._texts if self._texts else 1.0
        scored = [
            candidate._replace(score=self._score(having, length, average))
            for candidate, having, length in reversed(self._found)
        ]
        return sorted(scored, key=lambda found: found.score, reverse=True)[:limit]

    def _score(self, having: dict[str, int], length: int, average: float) -> float:
        score = 0.0
        for term, count in having.items():
            worth = log(1 + (self._texts - self._having[term] + 0.5) / (self._having[term] + 0.5))
            score += worth * count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
        return score
