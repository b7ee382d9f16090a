"""What a search may cost, and what it keeps waiting."""

import asyncio
import threading

import pytest

from sidecar.store import open_store
from sidecar.store.records import SessionRecord
from sidecar.store.search import Searchable, SearchError, SearchQuery
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append
from tests.postgres_server import shared_server
from tests.search_kit import positions, rest, search
from tests.store_kit import LIMIT_S, REF, Driver

OTHER = SessionRef("host", "other")
NOTHING = "zzz|[0-9]{4}"
"""An expression for which no index helps."""


def test_a_pattern_of_more_than_a_thousand_characters_is_refused(store: Driver) -> None:
    store.append(REF, "plum")
    assert positions(store, "(?:plum)" + "x?" * 490, "regex") == [1]
    with pytest.raises(SearchError, match="characters"):
        search(store, "x?" * 501, "regex")


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_search_that_runs_out_of_time_tells_how_far_it_came_and_goes_on_from_there(
    store: Driver, newest_first: bool
) -> None:
    store.append(REF, *[f"plum {index % 10}" for index in range(60)])
    found: list[int] = []
    cursor = None
    rounds = 0
    while True:
        page = search(
            store, "[3-4]$", "regex", most_s=0.0, cursor=cursor, limit=100, newest_first=newest_first
        )
        found += [hit.position for hit in page.hits]
        rounds += 1
        if page.next_cursor is None:
            break
        assert not page.complete
        cursor = page.next_cursor
    assert rounds > 1
    wanted = [index + 1 for index in range(60) if index % 10 in (3, 4)]
    assert found == (wanted[::-1] if newest_first else wanted)


def test_a_ranked_search_without_time_tells_what_the_index_knows(store: Driver) -> None:
    store.append(REF, *[f"plum {index} " + "word " * 50 for index in range(300)])
    rest(store)
    found = search(store, "plum", most_s=0.0, limit=500)
    assert not found.complete
    assert len(found.hits) == 300


class Gate:
    """An extraction that waits in one session until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self.looked_at = 0

    def extract(self, session: SessionRecord, body: bytes) -> Searchable:
        if session.ref == REF and b"gated" in body and threading.current_thread().name != "store-writer":
            self.looked_at += 1
            self.reached.set()
            assert self.open.wait(LIMIT_S)
        return Searchable(body.decode(), ())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_search_keeps_no_search_of_another_session_waiting_and_ends_when_it_is_cancelled(
    kind: str, tmp_path: object
) -> None:
    gate = Gate()
    url = shared_server().fresh() if kind == "postgres" else None

    async def run() -> None:
        store = open_store(kind, tmp_path / "store.db", url=url, extract=gate.extract)  # pyright: ignore
        await store.open()
        for ref in (REF, OTHER):
            made = [NewMessage(body=b"gated plum 1", role="user", opens_turn=True) for _ in range(200)]
            await store.write(Append(ref, made, message_format="openai"))
        query = SearchQuery(text=NOTHING, kind="regex")
        blocked = asyncio.create_task(store.search(REF, query))
        await asyncio.to_thread(gate.reached.wait, LIMIT_S)
        assert (await store.search(OTHER, query)).complete
        blocked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await blocked
        gate.open.set()
        await store.close()
        assert gate.looked_at < 150

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))
