"""Rows of a store: sessions, messages, what is known of them, summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

LARGEST_VALUE = 16 << 10
"""Bytes of a value that is read with the snapshot of a session."""
LONGEST_NAME = 200
"""Characters of the name of a value that every store keeps as they are."""
SECRET_BYTES = 32
"""Bytes of the secret with which a store marks what was made for its sessions."""


class SessionRef(NamedTuple):
    """The key of a session: the namespace keeps hosts on one store apart."""

    namespace: str
    session_id: str

    @property
    def root(self) -> str:
        """The name of the family that begins with this session."""
        return f"{self.namespace}\x1f{self.session_id}"


class SessionHead(Struct, frozen=True, kw_only=True):
    """The short facts of one session."""

    ref: SessionRef
    uid: int
    """Unique in the store for ever; a session deleted and made anew has another."""
    agent_id: str | None
    session_key: str | None
    message_format: str
    message_count: int
    """Also the position of the newest message: positions run from 1 without gaps."""
    turn_count: int
    revision: int
    """Rises whenever stored messages change in another way than by appending."""
    created_ms: int
    updated_ms: int
    """When messages, summaries, or what a `Touch` tells of, changed last."""
    root: str = ""
    """The name of its family: of the session that this one was forked from, and that one from, or its own."""
    first_edition: bool = False
    """True where messages of the family are older than the secrets of the store."""


class StoredMessage(NamedTuple):
    """One message as it is kept."""

    position: int
    message_id: str
    turn: int
    turn_id: str
    role: str
    timestamp_ms: int
    """The host's time stamp, otherwise the time of receipt."""
    heartbeat: bool
    body: bytes
    """The bytes that came."""


class Facts(NamedTuple):
    """What is worked out of a message behind the acknowledgement, and kept beside it."""

    tokens: int
    call_key: int
    stamp_key: int
    text_key: int


class KeyedMessage(NamedTuple):
    """A stored message without its body: what alignment needs."""

    position: int
    message_id: str
    host_id: str | None
    """The id the host gave, `None` where the store made one up."""
    inner_id: str | None
    turn_id: str
    facts: Facts | None
    """`None` while nobody has worked them out."""


class NewMessage(Struct, kw_only=True):
    """A message to be stored."""

    body: bytes
    role: str
    opens_turn: bool
    message_id: str | None = None
    inner_id: str | None = None
    timestamp_ms: int | None = None
    heartbeat: bool = False
    turn_id: str | None = None
    """The host's own name for the turn; a name that differs from the newest turn's opens a turn."""
    after: int | None = None
    """Store behind this position (0: in front of everything) instead of at the end; joins that turn.

    Positions are meant as they were before the write; several behind the same one keep their order.
    """
    facts: Facts | None = None
    """Given where they are known already, otherwise worked out later."""


class Appended(NamedTuple):
    """What became of one message of an `Append`."""

    message_id: str
    turn_id: str
    position: int
    stored: bool
    existing: bytes | None
    """The body that is kept under the same id, where `stored` is false."""


class SummaryNode(Struct, frozen=True, kw_only=True):
    """A summary of a range of messages."""

    node_id: str
    first_position: int
    last_position: int
    text: str
    tokens: int
    quality: str
    created_ms: int
    depth: int = 0
    sources: tuple[str, ...] = ()
    """Node ids that were condensed into this one; empty for a summary of messages."""


class SessionSettings(NamedTuple):
    """What `session/configure` has set for a session or an agent."""

    engine: str | None
    config: bytes | None
    """JSON object, `None` where nothing is set."""


class SessionSnapshot(NamedTuple):
    """What a request needs to know of a session at its start, read in one transaction."""

    head: SessionHead | None
    prepared_for: str | None
    """The agent of a spawned child that has stored nothing yet."""
    own: SessionSettings
    """Set for the session."""
    waiting: SessionSettings
    """Set by the asking agent while the session was not its own."""
    agents: SessionSettings
    """Set for the asking agent, or for the owner where no agent asks."""
    values: Mapping[str, bytes | None]
    """Values kept by `SaveState`, `None` for one above `LARGEST_VALUE` bytes; not derived ones."""
