"""The rows of a store that lives in memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sidecar.store.cursors import decode_cursor, encode_cursor
from sidecar.store.expiring import is_set_aside
from sidecar.store.identity import written_out
from sidecar.store.memory.buffer import MemoryBuffers
from sidecar.store.memory.rows import OwnRows
from sidecar.store.memory.spawns import MemorySpawns
from sidecar.store.presenting import stored_messages
from sidecar.store.reads_on_loop import Lacking
from sidecar.store.records import OPENS, KeyedRow, MessageRow, SessionRecord
from sidecar.store.spawn import SNAPSHOTS
from sidecar.store.stored import Facts, SessionHead, SessionRef, SessionSettings, SummaryNode
from sidecar.store.writes import DERIVED

if TYPE_CHECKING:
    from sidecar.store.indexing.covering import Sums
    from sidecar.store.indexing.segments import Segment
    from sidecar.store.indexing.shelf import Shelf

_END = 1 << 62
_NO_FACTS = (None, 0, 0, 0)
_UNSET = SessionSettings(None, None)


class MemoryTables:
    """`Tables`, `Lookups` and `SearchReads` over dictionaries."""

    indexes = False

    def __init__(self) -> None:
        self.now_ms = 0
        self.buffers = MemoryBuffers(lambda: self.now_ms)
        self.spawns = MemorySpawns(lambda namespace, key: self._session_keys.get((namespace, key)))
        self._next_uid = 1
        self._next_row = 1
        self._sessions: dict[int, SessionRecord] = {}
        self._uids: dict[SessionRef, int] = {}
        self._rows: dict[int, OwnRows] = {}
        self._facts: dict[int, Facts] = {}
        self._lacking: dict[int, int] = {}
        """The sessions of the rows without facts, by row id."""
        self._summaries: dict[int, dict[str, SummaryNode]] = {}
        self._session_keys: dict[tuple[str, str], int] = {}
        self._advancement_keys: dict[SessionRef, set[str]] = {}
        self._state: dict[SessionRef, dict[str, bytes]] = {}
        self._settings: dict[tuple[str, str, str], SessionSettings] = {}

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """See `RowReads`."""
        uid = self._uids.get(ref)
        return None if uid is None else self._sessions[uid]

    def session_of(self, uid: int) -> SessionRecord:
        """See `RowReads`."""
        return self._sessions[uid]

    def rows(self, uid: int, first: int, last: int) -> list[MessageRow]:
        """See `RowReads`."""
        return self._rows[uid].between(first, last)

    def keyed_rows(self, uid: int, first: int, last: int) -> list[KeyedRow]:
        """See `RowReads`."""
        return [
            KeyedRow(
                row.position,
                row.turn,
                row.flags,
                row.name,
                row.number,
                row.turn_label,
                row.inner_id,
                *self._facts.get(row.row_id, _NO_FACTS),
            )
            for row in self._rows[uid].between(first, last)
        ]

    def rows_of_role(self, uid: int, code: str, first: int, last: int) -> list[MessageRow]:
        """See `RowReads`."""
        return [row for row in self._rows[uid].between(first, last) if row.role == code]

    def has_session(self, uid: int) -> bool:
        """Whether there is a session of that uid."""
        return uid in self._sessions

    def rows_at(self, uid: int, positions: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        return [row for position in positions for row in self._rows[uid].between(position, position)]

    def segments(self, uid: int, first: int, last: int) -> "list[Segment]":
        """See `SearchReads`; everything is gathered from the messages."""
        del uid, first, last
        return []

    def segments_in(self, namespace: str) -> "list[Segment]":
        """See `SearchReads`."""
        del namespace
        return []

    def segments_after(self, segment: int) -> "list[Segment]":
        """See `SearchReads`."""
        del segment
        return []

    def bundle(self, number: int) -> "Segment | None":
        """See `SearchReads`."""
        del number

    def shelf(self, segment: "Segment") -> "Shelf":
        """See `SearchReads`."""
        raise LookupError(segment)

    def bundle_shelf(self, bundle: "Segment", held: "Sequence[Segment]") -> "Shelf":
        """See `SearchReads`."""
        raise LookupError(bundle, held)

    def changed_since(self, namespace: str, agent_id: str | None, stamp_ms: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [record for record in self.readable(namespace, agent_id) if record.updated_ms >= stamp_ms]

    def sums(self, namespace: str, agent_id: str | None) -> "Sums | None":
        """See `SearchReads`; what there is, is looked up faster than summed."""
        del namespace, agent_id

    def readable(self, namespace: str, agent_id: str | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [
            record
            for record in self._sessions.values()
            if record.ref.namespace == namespace
            and (agent_id is None or record.agent_id is None or record.agent_id == agent_id)
        ]

    def turn_at(self, uid: int, position: int) -> int:
        """See `RowReads`."""
        return self._rows[uid].at(position).turn

    def place_of_name(self, uid: int, name: str) -> int | None:
        """See `RowReads`."""
        return self._rows[uid].names.get(name)

    def place_of_number(self, uid: int, number: int) -> int | None:
        """See `RowReads`."""
        return self._rows[uid].numbers.get(number)

    def place_of_inner_id(self, uid: int, inner_id: str) -> int | None:
        """See `RowReads`."""
        return self._rows[uid].inner_ids.get(inner_id)

    def take_row_ids(self, count: int) -> int:
        """See `Tables`."""
        first = self._next_row
        self._next_row += count
        return first

    def add_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        uid = record.uid = self._next_uid
        self._next_uid += 1
        self._sessions[uid] = record
        self._uids[record.ref] = uid
        self._rows[uid] = OwnRows()
        self._summaries[uid] = {}

    def save_session(self, record: SessionRecord) -> None:
        """See `Tables`; records are kept as they are."""

    def rename_session(self, record: SessionRecord, ref: SessionRef) -> None:
        """See `Tables`."""
        self._uids[ref] = self._uids.pop(record.ref)
        self._session_keys = {key: uid for key, uid in self._session_keys.items() if uid != record.uid}
        record.ref = ref

    def drop_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        self.drop_rows(record.uid, 0)
        for table in (self._sessions, self._rows, self._summaries):
            del table[record.uid]
        del self._uids[record.ref]
        self._session_keys = {key: uid for key, uid in self._session_keys.items() if uid != record.uid}

    def children(self, uid: int) -> list[SessionRecord]:
        """See `Tables`."""
        return [record for record in self._sessions.values() if record.parent == uid]

    def add_row(self, row: MessageRow, facts: Facts | None) -> None:
        """See `Tables`."""
        self._rows[row.session].add(row)
        if facts is None:
            self._lacking[row.row_id] = row.session
        else:
            self._facts[row.row_id] = facts

    def shift_rows(self, uid: int, first: int, by: int) -> None:
        """See `Tables`."""
        own = self._rows[uid]
        moved: list[MessageRow] = []
        for row in own.between(first, _END):
            number = row.position if row.name is None and row.number is None else row.number
            moved.append(row._replace(position=row.position + by, number=number))
        own.replace(own.between(0, first - 1) + moved)

    def drop_rows(self, uid: int, first: int) -> None:
        """See `Tables`."""
        own = self._rows[uid]
        for row in own.between(first, _END):
            self._facts.pop(row.row_id, None)
            self._lacking.pop(row.row_id, None)
        own.replace(own.between(0, first - 1))

    def move_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        own = self._rows[source.uid]
        moved = [written_out(row, source.tag)._replace(session=uid) for row in own.between(first, last)]
        own.replace(own.between(0, first - 1) + own.between(last + 1, _END))
        self._receive(uid, moved)
        self._lacking.update((row.row_id, uid) for row in moved if row.row_id in self._lacking)

    def copy_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        copies: list[MessageRow] = []
        for row in self._rows[source.uid].between(first, last):
            copy = written_out(row, source.tag)._replace(session=uid, row_id=self.take_row_ids(1))
            copies.append(copy)
            if row.row_id in self._facts:
                self._facts[copy.row_id] = self._facts[row.row_id]
            else:
                self._lacking[copy.row_id] = uid
        self._receive(uid, copies)

    def opener_before(self, uid: int, position: int) -> bool:
        """See `Tables`."""
        return any(row.flags & OPENS for row in self._rows[uid].between(0, position))

    def save_facts(self, uid: int, position: int, facts: Facts) -> None:
        """See `Tables`."""
        for row in self._rows[uid].between(position, position):
            self._facts[row.row_id] = facts
            self._lacking.pop(row.row_id, None)

    def bind_key(self, namespace: str, session_key: str, uid: int) -> None:
        """See `Tables`."""
        self._session_keys[namespace, session_key] = uid

    def record_key(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Tables`."""
        keys = self._advancement_keys.setdefault(ref, set())
        new = advancement_key not in keys
        keys.add(advancement_key)
        return new

    def save_state(self, ref: SessionRef, name: str, value: bytes | None) -> None:
        """See `Tables`."""
        if value is None:
            self._state.get(ref, {}).pop(name, None)
        else:
            self._state.setdefault(ref, {})[name] = value

    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """See `Tables`."""
        return self._settings.get((namespace, scope, scope_id), _UNSET)

    def save_settings(self, namespace: str, scope: str, scope_id: str, settings: SessionSettings) -> None:
        """See `Tables`."""
        self._settings[namespace, scope, scope_id] = settings

    def copy_state(self, source: SessionRef, target: SessionRef) -> None:
        """See `Tables`."""
        kept = self._state.get(source, {})
        self._state[target] = {name: kept[name] for name in kept if not name.startswith(DERIVED)}
        self.buffers.copy_injected_ids(source, target)

    def drop_belongings(self, ref: SessionRef) -> None:
        """See `Tables`."""
        self._state.pop(ref, None)
        self._advancement_keys.pop(ref, None)
        self._settings.pop((ref.namespace, "session", ref.session_id), None)
        self.buffers.drop_session(ref)

    def add_summary(self, uid: int, node: SummaryNode) -> None:
        """See `Tables`."""
        self._summaries[uid][node.node_id] = node

    def drop_summaries(self, uid: int, node_ids: Sequence[str]) -> None:
        """See `Tables`."""
        for node_id in node_ids:
            self._summaries[uid].pop(node_id, None)

    def drop_summaries_behind(self, uid: int, position: int) -> None:
        """See `Tables`."""
        kept = [node for node in self._summaries[uid].values() if node.last_position <= position]
        self._summaries[uid] = {node.node_id: node for node in kept}

    def shift_summaries(self, uid: int, after: int, by: int) -> None:
        """See `Tables`."""
        for node in list(self._summaries[uid].values()):
            if node.last_position > after:
                first = node.first_position + (by if node.first_position > after else 0)
                self._summaries[uid][node.node_id] = replace(
                    node, first_position=first, last_position=node.last_position + by
                )

    def copy_summaries(self, uid: int, target: int, last: int) -> None:
        """See `Tables`."""
        for node in self._summaries[uid].values():
            if node.last_position <= last:
                self._summaries[target][node.node_id] = node

    def session_by_key(self, namespace: str, session_key: str) -> SessionHead | None:
        """See `Lookups`."""
        uid = self._session_keys.get((namespace, session_key))
        return None if uid is None else self._sessions[uid].head()

    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `Lookups`."""
        before = None if cursor is None else decode_cursor(cursor)
        found = [
            record
            for record in self._sessions.values()
            if (namespace is None or record.ref.namespace == namespace)
            and (before is None or (record.updated_ms, record.uid) < before)
        ]
        found.sort(key=lambda record: (record.updated_ms, record.uid), reverse=True)
        page = found[:limit]
        rest = encode_cursor(page[-1]) if page and len(found) > limit else None
        return [record.head() for record in page], rest

    def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """See `Lookups`."""
        found = [
            record
            for record in self._sessions.values()
            if record.updated_ms < before_ms and not record.ref.namespace.endswith(SNAPSHOTS)
        ]
        found.sort(key=lambda record: (not is_set_aside(record.ref), record.updated_ms, record.uid))
        return [record.head() for record in found[:limit]]

    def used_bytes(self) -> int:
        """See `Lookups`."""
        return sum(len(row.body) for own in self._rows.values() for row in own.between(0, _END))

    def summaries(self, ref: SessionRef, *, texts: bool = True) -> list[SummaryNode]:
        """See `Lookups`."""
        uid = self._uids.get(ref)
        nodes = [] if uid is None else list(self._summaries[uid].values())
        if not texts:
            nodes = [replace(node, text="") for node in nodes]
        return sorted(
            nodes, key=lambda node: (node.first_position, node.depth, node.last_position, node.node_id)
        )

    def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """See `Lookups`."""
        uid = self._uids.get(ref)
        nodes = {} if uid is None else self._summaries[uid]
        return [nodes[node_id] for node_id in node_ids if node_id in nodes]

    def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `Lookups`."""
        return self._state.get(ref, {}).get(name)

    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Lookups`."""
        return advancement_key in self._advancement_keys.get(ref, ())

    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """See `Lookups`."""
        by_session: dict[int, list[int]] = {}
        for _, (row_id, uid) in zip(range(limit), self._lacking.items(), strict=False):
            by_session.setdefault(uid, []).append(row_id)
        found: Lacking = []
        for uid, row_ids in by_session.items():
            record, own = self._sessions[uid], self._rows[uid]
            messages = stored_messages(record, [own.at(own.places[row_id]) for row_id in row_ids])
            found.append((record.ref, record.message_format, record.revision, messages))
        return found, True

    def _receive(self, uid: int, rows: list[MessageRow]) -> None:
        own = self._rows[uid]
        own.replace(sorted(own.between(0, _END) + rows, key=lambda row: row.position))
