"""The small operations on stored rows that a kind of store must offer to the shared rules."""

from collections.abc import Sequence
from typing import Protocol

from sidecar.store.buffer import BufferRows
from sidecar.store.records import KeyedRow, MessageRow, SessionRecord
from sidecar.store.spawn import SpawnRows
from sidecar.store.stored import Facts, SessionRef, SessionSettings, SummaryNode


class RowReads(Protocol):
    """Reads of the rows that one session owns, without regard to what it shares with others."""

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """The session of that name."""
        ...

    def session_of(self, uid: int) -> SessionRecord:
        """The session of that uid, which must be there."""
        ...

    def rows(self, uid: int, first: int, last: int) -> list[MessageRow]:
        """The rows at positions `first` to `last`, in order."""
        ...

    def keyed_rows(self, uid: int, first: int, last: int) -> list[KeyedRow]:
        """The same without bodies, with their facts."""
        ...

    def rows_of_role(self, uid: int, code: str, first: int, last: int) -> list[MessageRow]:
        """The rows of one role at these positions, in order; quick for `records.SYSTEM`."""
        ...

    def turn_at(self, uid: int, position: int) -> int:
        """The turn of the row at this position, which must be there."""
        ...

    def place_of_name(self, uid: int, name: str) -> int | None:
        """The position of the row whose id is written out like this."""
        ...

    def place_of_number(self, uid: int, number: int) -> int | None:
        """The position of the row whose made-up id has this number."""
        ...

    def place_of_inner_id(self, uid: int, inner_id: str) -> int | None:
        """The first position with this inner id."""
        ...


class Tables(RowReads, Protocol):
    """Reads and changes inside one step; the store makes the step whole or undoes it."""

    now_ms: int
    """The time of the step."""

    @property
    def buffers(self) -> BufferRows:
        """The buffers that are kept beside the sessions."""
        ...

    @property
    def spawns(self) -> SpawnRows:
        """The spawned sessions that have not ended."""
        ...

    def take_row_ids(self, count: int) -> int:
        """The first of `count` row ids in a row that nothing has had before."""
        ...

    def add_session(self, record: SessionRecord) -> None:
        """Keep a new session, and set its `uid` to one that no session has had before."""
        ...

    def save_session(self, record: SessionRecord) -> None:
        """Keep what was changed in the record; may wait until the step is completed."""
        ...

    def rename_session(self, record: SessionRecord, ref: SessionRef) -> None:
        """Give a session a name that none has, and let no key lead to it any more."""
        ...

    def drop_session(self, record: SessionRecord) -> None:
        """Erase the session with its rows, facts, summaries and bound keys."""
        ...

    def children(self, uid: int) -> list[SessionRecord]:
        """The sessions whose `parent` this is."""
        ...

    def add_row(self, row: MessageRow, facts: Facts | None) -> None:
        """Keep a message."""
        ...

    def shift_rows(self, uid: int, first: int, by: int) -> None:
        """Move the rows from position `first` on up by `by`; their ids stay as they are."""
        ...

    def drop_rows(self, uid: int, first: int) -> None:
        """Erase the rows from position `first` on."""
        ...

    def move_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """Make rows of `source` another session's own, at the same positions, under the same ids."""
        ...

    def copy_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """The same with copies, facts included."""
        ...

    def opener_before(self, uid: int, position: int) -> bool:
        """Whether a row of the session with the flag `OPENS` stands at or before the position."""
        ...

    def save_facts(self, uid: int, position: int, facts: Facts) -> None:
        """Keep facts of the row at this position, where there is one."""
        ...

    def bind_key(self, namespace: str, session_key: str, agent_id: str | None, uid: int) -> None:
        """Let the agent's key lead to this session."""
        ...

    def record_key(self, ref: SessionRef, advancement_key: str) -> bool:
        """Record an advancement key; true where it is new."""
        ...

    def save_state(self, ref: SessionRef, name: str, value: bytes | None) -> None:
        """Keep a value, or remove it."""
        ...

    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """The settings; both members `None` where there are none."""
        ...

    def save_settings(self, namespace: str, scope: str, scope_id: str, settings: SessionSettings) -> None:
        """Replace the settings."""
        ...

    def copy_state(self, source: SessionRef, target: SessionRef) -> None:
        """Replace the target's values by those of the source, and give it the source's injected ids."""
        ...

    def drop_belongings(self, ref: SessionRef) -> None:
        """Erase what is kept under this name: values, settings, episodes, keys, ended spawns."""
        ...

    def add_summary(self, uid: int, node: SummaryNode) -> None:
        """Keep a node; one of the same id is replaced."""
        ...

    def drop_summaries(self, uid: int, node_ids: Sequence[str]) -> None:
        """Erase these nodes."""
        ...

    def drop_summaries_behind(self, uid: int, position: int) -> None:
        """Erase the nodes that reach behind the position."""
        ...

    def shift_summaries(self, uid: int, after: int, by: int) -> None:
        """Follow messages put in behind a position: nodes behind it move, nodes across it widen."""
        ...

    def copy_summaries(self, uid: int, target: int, last: int) -> None:
        """Give another session copies of the nodes that end at or before a position."""
        ...
