"""The search index of a PostgreSQL store: the terms of every message as numbers, in a column beside it.

A number is the CRC-32 of a term or of a part of a word: what it finds is looked at, so two terms of the same
number cost a look. `Indexer` fills the column behind the commit of the message; it goes where the message is
moved, copied or erased. Searches look at messages without it, which are the newest.

Whether parts of words are indexed is kept in `search_index`, for all processes that share the store: the one
that begins the index decides.
"""

from collections.abc import Iterable, Sequence
from zlib import crc32

from sidecar.store.postgres.connection import Connection, Row, begin_reading, begin_writing
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract
from sidecar.store.search.query import Groups, indexed_terms
from sidecar.store.search.scope import MOST_POSITION, place_of, position_of, uid_of
from sidecar.store.search.terms import written, written_part

_STEP_BYTES = 128 << 10
"""Bytes of messages that are filled in in one step, of several."""
_SIZES_WITHOUT = (
    "SELECT row_id, octet_length(body) FROM messages WHERE terms IS NULL ORDER BY session, position LIMIT %s"
)
_WITHOUT = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE terms IS NULL AND row_id = ANY(%s::bigint[]) "
    "ORDER BY session, position FOR UPDATE SKIP LOCKED"
)
_FILL_IN = "UPDATE messages SET terms = %s::int[] WHERE session = %s AND position = %s AND row_id = %s"
_PARTS = "SELECT parts FROM search_index"
_BEGIN_INDEX = "INSERT INTO search_index (parts) VALUES (%s::int::boolean) ON CONFLICT DO NOTHING"
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = %s "
    "AND (%s::text IS NULL OR agent_id IS NULL OR agent_id = %s) ORDER BY uid LIMIT %s"
)
_IN_SESSION = "session = %s AND position BETWEEN %s AND %s"
_IN_RANGE = "(session, position) BETWEEN (%s::int, %s::int) AND (%s::int, %s::int)"
_LARGEST = (1 << 31) - 1


class GINReads(PostgresLookups):
    """`SearchReads` over one connection."""

    _parts: bool | None = None

    def begin(self) -> None:
        """Begin a view that later commits do not change, in which every statement gets a plan of its own."""
        self._parts = None
        begin_reading(self.connection, "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off")

    @property
    def has_parts(self) -> bool:
        """See `SearchReads`."""
        if self._parts is None:
            self._parts = self.query(_PARTS) == [(True,)]
        return self._parts

    def candidates(
        self, groups: Groups, parts: Sequence[str], low: int, high: int, limit: int, *, newest: bool
    ) -> list[int]:
        """See `SearchReads`."""
        all_of = [*map(written_part, parts), *(written(group[0]) for group in groups if len(group) == 1)]
        some_of = [list(map(written, group)) for group in groups if len(group) > 1]
        conditions = [*(["terms @> %s::int[]"] if all_of else []), *["terms && %s::int[]"] * len(some_of)]
        between, bounds = _between(low, high)
        order = "DESC" if newest else "ASC"
        found = self.query(
            f"SELECT session, position FROM messages WHERE {' AND '.join((*conditions, between))} "
            f"ORDER BY session {order}, position {order} LIMIT %s",
            (*map(numbers, filter(None, (all_of, *some_of))), *bounds, limit),
        )
        return [place_of(*row) for row in found]

    def not_indexed(self, low: int, high: int, limit: int) -> list[int]:
        """See `SearchReads`."""
        between, bounds = _between(low, high)
        found = self.query(
            f"SELECT session, position FROM messages WHERE terms IS NULL AND {between} "
            "ORDER BY session DESC, position DESC LIMIT %s",
            (*bounds, limit),
        )
        return sorted(place_of(*row) for row in found if row[1] <= MOST_POSITION)

    def rows_at(self, places: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        return [MessageRow._make(row) for row in self._at(MESSAGE_COLUMNS, places)]

    def row_ids_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        found = self._at("session, position, row_id", places)
        return {place_of(session, position): row_id for session, position, row_id in found}

    def mean_size(self, low: int, high: int, most: int) -> float:
        """See `SearchReads`."""
        between, bounds = _between(low, high)
        found = self.value(
            "SELECT avg(size)::float8 FROM (SELECT octet_length(body) AS size FROM messages "
            f"WHERE {between} ORDER BY session DESC, position DESC LIMIT %s) AS newest",
            (*bounds, most),
        )
        return found or 0.0

    def stamps_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        found = self._at("session, position, timestamp_ms", places)
        return {place_of(session, position): stamp for session, position, stamp in found}

    def readable(self, namespace: str, agent_id: str | None, limit: int | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(_READABLE, (namespace, agent_id, agent_id, limit))
        return [session_record(row) for row in found]

    def message_total(self) -> int:
        """See `SearchReads`; as the server has counted them last."""
        found = self.value("SELECT reltuples::bigint FROM pg_class WHERE oid = 'messages'::regclass")
        return max(found, 1_000)

    def newest_session(self) -> int:
        """See `SearchReads`."""
        return self.value("SELECT max(uid) FROM sessions") or 0

    def children_of(self, uid: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE parent = %s ORDER BY uid", (uid,))
        return [session_record(row) for row in found]

    def owner(self, uid: int) -> SessionRecord | None:
        """See `SearchReads`."""
        found = self.query(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = %s", (uid,))
        return session_record(found[0]) if found else None

    def _at(self, columns: str, places: Sequence[int]) -> list[Row]:
        qualified = ", ".join(f"messages.{column}" for column in columns.split(", "))
        return self.query(
            f"SELECT {qualified} FROM unnest(%s::int[], %s::int[]) AS wanted (session, position) "
            "JOIN messages USING (session, position)",
            (list(map(uid_of, places)), list(map(position_of, places))),
        )


class Indexer:
    """Fills in the terms of messages that have none, a few at a time."""

    def __init__(self, extract: Extract, *, parts: bool) -> None:
        self._extract = extract
        self._parts = parts
        self.has_work = True

    def note(self) -> None:
        """Say that messages may be without their terms."""
        self.has_work = True

    def index(self, connection: Connection, most: int) -> None:
        """Fill in up to `most` messages; those that another process works on are left to it."""
        reads = PostgresReads(connection)
        try:
            with connection.pipeline():
                begin_writing(reads.cursor)
            sizes = reads.query(_SIZES_WITHOUT, (most,))
            wanted, total = list[int](), 0
            for row_id, size in sizes:
                total += size
                if wanted and total > _STEP_BYTES:
                    break
                wanted.append(row_id)
            rows = [MessageRow._make(row) for row in reads.query(_WITHOUT, (wanted,))]
            if rows:
                parts = self._has_parts(reads)
                owners = {uid: reads.session_of(uid) for uid in {row.session for row in rows}}
                filled = [
                    (
                        numbers(indexed_terms(row, owners[row.session], self._extract, parts=parts).split()),
                        *(row.session, row.position, row.row_id),
                    )
                    for row in rows
                ]
                reads.cursor.executemany(_FILL_IN, filled)
        except BaseException:
            if not connection.closed:
                reads.cursor.execute("ROLLBACK")
            raise
        reads.cursor.execute("COMMIT")
        # Rows that are missing have been locked by another process, which goes on with them.
        self.has_work = len(rows) == len(wanted) and (len(sizes) == most or len(wanted) < len(sizes))

    def _has_parts(self, reads: PostgresReads) -> bool:
        """What the index holds of words: as it was begun, by this process where it is empty."""
        found = reads.query(_PARTS)
        if not found:
            reads.cursor.execute(_BEGIN_INDEX, (int(self._parts),))
            found = reads.query(_PARTS)
        return found[0][0]


def numbers(terms: Iterable[str]) -> list[int]:
    """The numbers that stand for terms; negative from the middle on, as PostgreSQL's are."""
    return sorted({((crc32(term.encode()) + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) for term in terms})


def _between(low: int, high: int) -> tuple[str, tuple[int, ...]]:
    """The condition for places, with its bindings."""
    first, last = min(uid_of(low), _LARGEST), min(uid_of(high), _LARGEST)
    if first == last:
        return _IN_SESSION, (first, position_of(low), position_of(high))
    return _IN_RANGE, (first, position_of(low), last, position_of(high))
