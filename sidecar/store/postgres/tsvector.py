"""The search index of a PostgreSQL store: the terms of every message beside it, in a column of its own.

`Indexer` writes them behind the commit of the message; they go where it is moved, copied or erased.
Searches look at messages without them, which are the newest, and those with more terms than the column takes.
"""

from collections.abc import Sequence

from sidecar.store.postgres.connection import Connection, Row, Value
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract
from sidecar.store.search.query import Groups, Term, facets
from sidecar.store.search.scope import MOST_POSITION, place_of, position_of, uid_of
from sidecar.store.search.terms import document_terms, is_cjk

_MOST_TERMS = 50_000
"""A column takes a megabyte."""
_LONGEST = 8 << 20
_MOST_BYTES = 900_000
_WITHOUT = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages "
    "WHERE words IS NULL AND row_id <> ALL(%s::bigint[]) "
    "ORDER BY session, position LIMIT %s FOR UPDATE SKIP LOCKED"
)
_FILL_IN = (
    "UPDATE messages SET words = %s::text::tsvector "
    "WHERE session = %s AND position = %s AND row_id = %s AND words IS NULL"
)
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = %s "
    "AND (%s::text IS NULL OR agent_id IS NULL OR agent_id = %s) ORDER BY uid LIMIT %s"
)
_IN_SESSION = "session = %s AND position BETWEEN %s AND %s"
_IN_RANGE = "(session, position) BETWEEN (%s::int, %s::int) AND (%s::int, %s::int)"
_LARGEST = (1 << 31) - 1


def words_of(row: MessageRow, owner: SessionRecord, extract: Extract) -> str | None:
    """The terms of a message as the column is given them, `None` where they are too many."""
    searchable = extract(owner, row.body)
    if len(searchable.text) > _LONGEST:
        return None
    terms = document_terms(searchable.text).counts
    written = " ".join(f"'{term}'" for term in (*terms, *facets(row, searchable)))
    return None if len(terms) > _MOST_TERMS or len(written.encode()) > _MOST_BYTES else written


class TsvectorReads(PostgresLookups):
    """`SearchReads` over one connection."""

    has_parts = False

    def begin(self) -> None:
        """Begin a view that later commits do not change, in which every statement gets a plan of its own."""
        super().begin()
        self.cursor.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        self.cursor.execute("SET LOCAL jit = off")

    def with_terms(self, groups: Groups, low: int, high: int, limit: int, *, newest: bool) -> list[int]:
        """See `SearchReads`."""
        wanted = " & ".join(f"({' | '.join(map(_asked, group))})" for group in groups)
        order = "DESC" if newest else "ASC"
        between, bounds = _between(low, high)
        found = self.query(
            f"SELECT session, position FROM messages WHERE words @@ %s::text::tsquery AND {between} "
            f"ORDER BY session {order}, position {order} LIMIT %s",
            (wanted, *bounds, limit),
        )
        return [place_of(*row) for row in found]

    def with_parts(self, parts: Sequence[str], low: int, high: int, limit: int, *, newest: bool) -> list[int]:
        """See `SearchReads`; there is no such index."""
        raise LookupError(parts, low, high, limit, newest)

    def not_indexed(self, low: int, high: int, limit: int) -> list[int]:
        """See `SearchReads`."""
        between, bounds = _between(low, high)
        found = self.query(
            f"SELECT session, position FROM messages WHERE words IS NULL AND {between} "
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

    def __init__(self, extract: Extract) -> None:
        self._extract = extract
        self._unfit: list[int] = []
        """Row ids of messages that stay without terms."""
        self.has_work = True

    def note(self) -> None:
        """Say that messages may be without their terms."""
        self.has_work = True

    def index(self, connection: Connection, most: int) -> None:
        """Fill in up to `most` messages; those that another process works on are left to it."""
        reads = PostgresReads(connection)
        reads.cursor.execute("BEGIN")
        try:
            rows = [MessageRow._make(row) for row in reads.query(_WITHOUT, (self._unfit, most))]
            owners = {uid: reads.session_of(uid) for uid in {row.session for row in rows}}
            filled: list[Sequence[Value]] = []
            for row in rows:
                words = self._words(row, owners[row.session])
                if words is None:
                    self._unfit.append(row.row_id)
                else:
                    filled.append((words, row.session, row.position, row.row_id))
            if filled:
                reads.cursor.executemany(_FILL_IN, filled)
        except BaseException:
            if not connection.closed:
                reads.cursor.execute("ROLLBACK")
            raise
        reads.cursor.execute("COMMIT")
        self.has_work = len(rows) == most

    def _words(self, row: MessageRow, owner: SessionRecord) -> str | None:
        try:
            return words_of(row, owner, self._extract)
        except Exception as error:
            import logging

            logging.getLogger(__name__).error("a message cannot be indexed", exc_info=error)
            return None


def _between(low: int, high: int) -> tuple[str, tuple[int, ...]]:
    """The condition for places, with its bindings."""
    first, last = min(uid_of(low), _LARGEST), min(uid_of(high), _LARGEST)
    if first == last:
        return _IN_SESSION, (first, position_of(low), position_of(high))
    return _IN_RANGE, (first, position_of(low), last, position_of(high))


def _asked(term: Term) -> str:
    """A CJK character alone stands for every pair that begins with it."""
    return f"'{term.stem}':*" if len(term.stem) == 1 and is_cjk(term.stem) else f"'{term.stem}'"
