"""The rows of a store, their ids and their turns.

A made-up id is the session's tag and a number, such as `k3f9x2ab-17`. While nothing was inserted or removed
the number is the position, so an id costs no storage.
"""

import os
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


_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_FAR = 1 << 40
"""Numbers beyond are never reached by counting, so they need no care."""


def new_tag() -> str:
    """Eight random letters and digits (40 bits) that tell one session's made-up ids from another's."""
    return "".join(_LETTERS[byte & 31] for byte in os.urandom(8))


def made_up(tag: str, number: int) -> str:
    """The id with this number."""
    return f"{tag}-{number}"


def number_in(tag: str, message_id: str) -> int | None:
    """The number of a made-up id of this tag, `None` where it is no such id."""
    if not message_id.startswith(tag) or message_id[len(tag) : len(tag) + 1] != "-":
        return None
    digits = message_id[len(tag) + 1 :]
    if not (digits.isascii() and digits.isdigit()) or digits[0] == "0" or len(digits) > 13:
        return None
    number = int(digits)
    return number if number < _FAR else None


def id_of(tag: str, name: str | None, number: int | None, position: int) -> str:
    """The id of a row; `tag` is that of the session that owns it."""
    return name if name is not None else f"{tag}-{position if number is None else number}"


def written_out(row: MessageRow, tag: str) -> MessageRow:
    """The row with its made-up id spelled out, so that it stays the same under another owner."""
    if row.name is not None:
        return row
    name = id_of(tag, None, row.number, row.position)
    return row._replace(name=name, number=None, flags=row.flags | MADE_UP)


def turn_name(turn: int, label: str | None) -> str:
    """The `turn_id` of a turn: the host's name where it gave one."""
    return label if label is not None else f"t{turn}"


def advance(record: SessionRecord, opens_turn: bool, heartbeat: bool, label: str | None) -> int:
    """Bring the newest turn to that of a message at the end; the flag to keep with the message.

    Turn 1 is there with the first message. The first message that opens a turn is still in it, each later
    one raises the number. A label that differs from the newest turn's name opens a turn by itself.
    Heartbeats join whatever is there.
    """
    empty = record.turn_count == 0
    if empty:
        record.turn_count = 1
    if heartbeat:
        return 0
    if label is not None:
        return _advance_labelled(record, opens_turn, label, empty)
    if not opens_turn:
        return 0
    if record.turn_opened:
        record.turn_count += 1
        record.turn_label = None
    record.turn_opened = True
    return OPENS


def _advance_labelled(record: SessionRecord, opens_turn: bool, label: str, empty: bool) -> int:
    if not empty:
        if label == turn_name(record.turn_count, record.turn_label):
            record.turn_opened = record.turn_opened or opens_turn
            return OPENS if opens_turn else 0
        record.turn_count += 1
    record.turn_label = None if label == f"t{record.turn_count}" else label
    record.turn_opened = True
    return OPENS
