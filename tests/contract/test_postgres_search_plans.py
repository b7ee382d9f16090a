"""PostgreSQL finds words and parts of words by its index, in many messages too."""

from collections.abc import Iterator

import psycopg
import pytest

from sidecar.store.postgres.connection import Row, Value, checked_conninfo, connect
from sidecar.store.postgres.gin import GINReads, numbers
from sidecar.store.postgres.store import PostgresStore
from sidecar.store.search.scope import EVERY_PLACE, place_of
from sidecar.store.search.terms import written_part
from tests.postgres_server import shared_server
from tests.store_kit import REF, Driver

MESSAGES, SESSIONS = 100_000, 100
EACH = MESSAGES // SESSIONS
_COMMON, _RARE, _PART, *_OTHERS = (
    numbers([term])[0]
    for term in ("common", "rare", written_part("par"), *(f"w{number}" for number in range(997)))
)
_FILL = f"""
    INSERT INTO sessions (namespace, session_id, message_format, tag, created_ms, updated_ms, revision,
        message_count, lift, turn_count, turn_opened, shared)
    SELECT 'host', 's' || n, 'openai', 'abc', 1, 2, 0, {EACH}, 0, 1, true, 0
    FROM generate_series(1, {SESSIONS}) AS n;
    INSERT INTO messages (row_id, timestamp_ms, session, position, turn, flags, role, body, terms)
    SELECT n, 1, 2 + n / {EACH}, 1 + n % {EACH}, 1, 0, 'u', 'body',
        ARRAY[{_COMMON}, (ARRAY{_OTHERS})[n % 997 + 1]]
            || CASE WHEN n % 10000 = 77 THEN ARRAY[{_RARE}, {_PART}] ELSE ARRAY[]::int[] END
    FROM generate_series(0, {MESSAGES - 1}) AS n;
    ANALYZE messages;
"""


class Explained(GINReads):
    """Keeps the plan of every statement."""

    plans: list[str]

    def query(self, statement: str, bindings: tuple[Value, ...] = ()) -> list[Row]:
        """See `PostgresReads`."""
        explained = super().query(f"EXPLAIN {statement}", bindings)
        self.plans.append("\n".join(line for (line,) in explained))
        return super().query(statement, bindings)


@pytest.fixture(scope="module")
def reads() -> Iterator[Explained]:
    url = shared_server().fresh()
    with Driver(lambda: PostgresStore(url)) as store:
        store.append(REF, "plum")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = context_sidecar")
        connection.execute(_FILL.encode())
    found = Explained(connect(checked_conninfo(url)))
    found.plans = []
    yield found
    found.connection.close()


def asked(
    reads: Explained, word: str, low: int, high: int, *, parts: tuple[str, ...] = ()
) -> tuple[list[int], str]:
    reads.plans.clear()
    reads.begin()
    found = reads.candidates([[word]] if word else [], parts, low, high, 1001, newest=True)
    reads.end()
    (plan,) = reads.plans
    return found, plan


def test_a_rare_word_in_all_sessions_is_found_by_the_index_of_words(reads: Explained) -> None:
    found, plan = asked(reads, "rare", *EVERY_PLACE)
    assert len(found) == MESSAGES // 10_000
    assert "message_terms" in plan
    assert "Seq Scan" not in plan


def test_a_part_of_a_word_in_all_sessions_is_found_by_the_same_index(reads: Explained) -> None:
    found, plan = asked(reads, "", *EVERY_PLACE, parts=("par",))
    assert len(found) == MESSAGES // 10_000
    assert "message_terms" in plan
    assert "Seq Scan" not in plan


def test_a_common_word_in_all_sessions_is_found_from_the_newest_back(reads: Explained) -> None:
    found, plan = asked(reads, "common", *EVERY_PLACE)
    assert len(found) == 1001
    assert found == sorted(found, reverse=True)
    assert "Seq Scan" not in plan
    assert "Sort" not in plan


@pytest.mark.parametrize(("word", "most"), [("common", 1000), ("w5", 2), ("absent", 0)])
def test_a_word_in_one_session_is_looked_for_in_that_session_alone(
    reads: Explained, word: str, most: int
) -> None:
    found, plan = asked(reads, word, place_of(40, 1), place_of(40, 1 << 20))
    assert most // 2 <= len(found) <= most
    assert "Seq Scan" not in plan
