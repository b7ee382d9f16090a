"""The rows that every store keeps, in the shape that the shared rules work on."""

from typing import NamedTuple

from msgspec import Struct

from sidecar.store.stored import SessionHead, SessionRef

HEARTBEAT = 1
"""Flag: the message is a heartbeat."""
OPENS = 2
"""Flag: the message opened a turn, or is the first that could have."""
MADE_UP = 4
"""Flag: `name` was made up by the store and written out."""

_CODES = {"system": "s", "user": "u", "assistant": "a", "tool": "t", "other": "o"}
_ROLES = {code: role for role, code in _CODES.items()}
SYSTEM = _CODES["system"]


class MessageRow(NamedTuple):
    """One message as a store keeps it, in the order of the columns."""

    row_id: int
    """Rises with every message stored, and is never used again."""
    session: int
    """The `uid` of the session that owns the row; forks may read it too."""
    position: int
    turn: int
    role: str
    """A code, see `role_code`."""
    timestamp_ms: int
    flags: int
    name: str | None
    """The id where it is written out; otherwise the id is made of the session's tag and a number."""
    number: int | None
    """The number of a made-up id where it is not the position."""
    turn_label: str | None
    """The host's own name for the turn."""
    inner_id: str | None
    body: bytes


class KeyedRow(NamedTuple):
    """A row without body, with the facts kept beside it (`None` where there are none)."""

    position: int
    turn: int
    flags: int
    name: str | None
    number: int | None
    turn_label: str | None
    inner_id: str | None
    tokens: int | None
    call_key: int
    stamp_key: int
    text_key: int


class SessionRecord(Struct):
    """What a store keeps of one session; changed in place while writes are applied."""

    uid: int
    ref: SessionRef
    message_format: str
    tag: str
    """The random part of the ids that are made up for this session."""
    agent_id: str | None
    session_key: str | None
    created_ms: int
    updated_ms: int
    revision: int
    message_count: int = 0
    lift: int = 0
    """What is added to the position to number the next made-up id: it never falls, so no id comes twice."""
    turn_count: int = 0
    turn_opened: bool = False
    """Whether a message has opened a turn; until then everything is turn 1."""
    turn_label: str | None = None
    """The host's name for the newest turn."""
    parent: int | None = None
    """The session that owns the messages up to position `shared`, of which some may again be shared."""
    shared: int = 0
    family: str | None = None
    """The `root` of the session that the first of its forks was made of; `None` where it was not forked."""
    first_edition: bool = False
    """Whether messages of the family are older than the secrets of the store."""

    @property
    def root(self) -> str:
        """The name of the family."""
        return self.family or self.ref.root

    def head(self) -> SessionHead:
        """The short facts that callers get."""
        return SessionHead(
            ref=self.ref,
            uid=self.uid,
            agent_id=self.agent_id,
            session_key=self.session_key,
            message_format=self.message_format,
            message_count=self.message_count,
            turn_count=self.turn_count,
            revision=self.revision,
            created_ms=self.created_ms,
            updated_ms=self.updated_ms,
            root=self.root,
            first_edition=self.first_edition,
        )


def role_code(role: str) -> str:
    """The short form in which a role is kept; a role that is none of ours stays readable."""
    return _CODES.get(role) or f"={role}"


def role_of(code: str) -> str:
    """The role that a code stands for."""
    return _ROLES.get(code) or code[1:]
