"""The rows of a store that lives in memory."""

from collections.abc import Sequence

from msgspec.structs import replace

from sidecar.store.admission import is_foreign, meant_by_key
from sidecar.store.erasure import is_set_aside
from sidecar.store.reads import Lacking, decode_cursor, encode_cursor, stored_messages
from sidecar.store.records import OPENS, KeyedRow, MessageRow, SessionRecord, written_out
from sidecar.store.search import SearchState
from sidecar.store.search.query import Groups
from sidecar.store.search.scope import place_of, position_of, uid_of
from sidecar.store.spawn import SNAPSHOTS
from sidecar.store.stored import LARGEST_VALUE, Facts, SessionHead, SessionRef, SessionSettings, SummaryNode
from sidecar.store.writes import DERIVED
from tests.conformance.dictionary.buffer import MemoryBuffers
from tests.conformance.dictionary.rows import OwnRows
from tests.conformance.dictionary.spawns import MemorySpawns

_END = 1 << 62
_NO_FACTS = (None, 0, 0, 0)
_UNSET = SessionSettings(None, None)


class MemoryTables:
    """`Tables`, `Lookups` and `SearchReads` over dictionaries."""

    has_parts = False

    def __init__(self) -> None:
        self.now_ms = 0
        self.buffers = MemoryBuffers(lambda: self.now_ms)
        self.spawns = MemorySpawns(lambda namespace, key: self._session_keys.get((namespace, key), {}))
        self._next_uid = 1
        self._next_row = 1
        self._sessions: dict[int, SessionRecord] = {}
        self._uids: dict[SessionRef, int] = {}
        self._rows: dict[int, OwnRows] = {}
        self._facts: dict[int, Facts] = {}
        self._lacking: dict[int, int] = {}
        """The sessions of the rows without facts, by row id."""
        self._summaries: dict[int, dict[str, SummaryNode]] = {}
        self._session_keys: dict[tuple[str, str], dict[str | None, int]] = {}
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

    def candidates(
        self, groups: Groups, parts: Sequence[str], low: int, high: int, limit: int, *, newest: bool
    ) -> list[int]:
        """See `SearchReads`; nothing is indexed."""
        del groups, parts, low, high, limit, newest
        return []

    def not_indexed(self, low: int, high: int, limit: int) -> list[int]:
        """See `SearchReads`."""
        places = [
            place_of(uid, row.position)
            for uid in sorted(self._sessions)
            if uid_of(low) <= uid <= uid_of(high)
            for row in self._rows[uid].between(0, _END)
        ]
        return [place for place in places if low <= place <= high][-limit:]

    def rows_at(self, places: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        return [
            row
            for place in places
            if uid_of(place) in self._rows
            for row in self._rows[uid_of(place)].between(position_of(place), position_of(place))
        ]

    def row_ids_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        return {place_of(row.session, row.position): row.row_id for row in self.rows_at(places)}

    def mean_size(self, low: int, high: int, most: int) -> float:
        """See `SearchReads`."""
        found = [len(row.body) for row in self.rows_at(self.not_indexed(low, high, most))]
        return sum(found) / max(len(found), 1)

    def stamps_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        return {place_of(row.session, row.position): row.timestamp_ms for row in self.rows_at(places)}

    def readable(self, namespace: str, agent_id: str | None, limit: int | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [
            record
            for record in self._sessions.values()
            if record.ref.namespace == namespace
            and (agent_id is None or record.agent_id is None or record.agent_id == agent_id)
        ][:limit]

    def message_total(self) -> int:
        """See `SearchReads`."""
        return self._next_row

    def newest_session(self) -> int:
        """See `SearchReads`."""
        return self._next_uid

    def children_of(self, uid: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        return self.children(uid)

    def owner(self, uid: int) -> SessionRecord | None:
        """See `SearchReads`."""
        return self._sessions.get(uid)

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
        self._unbind(record.uid)
        record.ref = ref

    def drop_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        self.drop_rows(record.uid, 0)
        for table in (self._sessions, self._rows, self._summaries):
            del table[record.uid]
        del self._uids[record.ref]
        self._unbind(record.uid)

    def _unbind(self, uid: int) -> None:
        for key, bound in list(self._session_keys.items()):
            self._session_keys[key] = {agent: other for agent, other in bound.items() if other != uid}
            if not self._session_keys[key]:
                del self._session_keys[key]

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

    def bind_key(self, namespace: str, session_key: str, agent_id: str | None, uid: int) -> None:
        """See `Tables`."""
        self._session_keys.setdefault((namespace, session_key), {})[agent_id] = uid

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
        self.spawns.drop_ended(ref)

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

    def session_by_key(self, namespace: str, session_key: str, agent_id: str | None) -> SessionHead | None:
        """See `Lookups`."""
        record = meant_by_key(self.spawns.bound(namespace, session_key), agent_id, self.session_of)
        return None if record is None else record.head()

    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `Lookups`."""
        before = None if cursor is None else decode_cursor(cursor)
        found = [
            record
            for record in self._sessions.values()
            if (namespace is None or record.ref.namespace == namespace)
            and not is_foreign(record.agent_id, agent_id)
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

    def search_state(self) -> SearchState:
        """See `Lookups`."""
        return SearchState(0)

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

    def values(self, ref: SessionRef) -> dict[str, bytes | None]:
        """See `Lookups`."""
        kept = self._state.get(ref, {})
        small = {name: value if len(value) <= LARGEST_VALUE else None for name, value in kept.items()}
        return {name: value for name, value in small.items() if not name.startswith(DERIVED)}

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
