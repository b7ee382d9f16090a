"""Vectors behind a store, made by the real model."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.messages.dialects import dialect
from sidecar.messages.text import searchable
from sidecar.semantic import search
from sidecar.semantic.index import NAME, SemanticIndex
from sidecar.semantic.search import FusedSearch
from sidecar.semantic.vectors import CHUNK, decoded
from sidecar.store.records import SessionRecord
from sidecar.store.search import Searchable, SearchQuery
from sidecar.store.sqlite.memory import MemoryStore
from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, Delete, Fork, SaveState, Truncate
from tests.store_kit import Driver

REF, CHILD, OTHER = (SessionRef("host", name) for name in ("main", "child", "other"))
MADE_S = 90.0
"""Maximum wait for vectors: the thread that makes them has the lowest priority."""
FACT = "We keep the emergency cash in the blue teapot on the top shelf."
ASKED = "Where is the money for bad days hidden?"


class Library:
    """A store with an index behind it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.index = driver.run(self.begin())
        self.driver.store.watch = self.index.watch  # pyright: ignore
        self.searching = FusedSearch(driver.store, self.index)  # pyright: ignore

    async def begin(self) -> SemanticIndex:
        return SemanticIndex(self.driver.store, rest_s=0.0)

    def say(self, *texts: str, ref: SessionRef = REF, agent: str | None = None) -> None:
        new = [NewMessage(body=body(text), role="user", opens_turn=True) for text in texts]
        self.driver.write(Append(ref, new, message_format="openai", agent_id=agent))

    def wait(self) -> None:
        """Wait until every message has been processed."""
        self.until(lambda: self.driver.run(self.index.waiting()) == 0)

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + MADE_S
        while not reached():
            assert time.monotonic() < deadline, "the vectors were not made in time"
            self.driver.run(_yield())

    def found(self, text: str, ref: SessionRef = REF) -> list[int]:
        query = SearchQuery(text=text, meaning=True)
        return [hit.position for hit in self.driver.run(self.searching.search(ref, query)).hits]

    def kept(self, number: int = 0, ref: SessionRef = REF) -> bytes | None:
        return self.driver.run(self.driver.store.state(ref, f"{NAME}{number}"))

    def close(self) -> None:
        self.driver.store.watch = None  # pyright: ignore
        self.driver.run(self.index.close())


async def _yield() -> None:
    await asyncio.sleep(0.01)


async def _note(index: SemanticIndex) -> None:
    index.note(REF)


def body(text: str) -> bytes:
    return json.dumps({"role": "user", "content": text}, ensure_ascii=False).encode()


def extract(session: SessionRecord, body: bytes) -> Searchable:
    return Searchable(*searchable(dialect(session.message_format), body))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds however busy the machine is."""
    monkeypatch.setattr(search, "PATIENCE_S", MADE_S)


@pytest.fixture
def library() -> Iterator[Library]:
    with Driver(lambda: MemoryStore(extract)) as driver:
        library = Library(driver)
        yield library
        library.close()


def test_text_with_the_same_meaning_is_found_without_a_common_word(library: Library) -> None:
    library.say("The bus leaves at nine.", FACT, "My sister plays the cello.")
    library.wait()
    assert library.found(ASKED)[:1] == [2]


def test_a_search_that_does_not_ask_for_meaning_is_by_words(library: Library) -> None:
    library.say(FACT)
    library.wait()
    query = SearchQuery(text=ASKED)
    assert library.driver.run(library.searching.search(REF, query)).hits == []


def test_text_without_a_vector_is_found_by_its_words(library: Library) -> None:
    library.say("The bus leaves at nine.")
    assert library.found("When does the bus leave?") == [1]


def test_nothing_is_stored_for_a_session_deleted_meanwhile(library: Library) -> None:
    library.say(FACT)
    library.driver.write(Delete(REF))
    library.wait()
    assert library.kept() is None
    library.say("The bus leaves at nine.")
    library.wait()
    assert library.found(ASKED) == []


def test_truncated_messages_are_not_found_and_their_vectors_erased(library: Library) -> None:
    library.say(*(["Hm."] * CHUNK), FACT)
    library.wait()
    first = library.driver.run(library.driver.store.messages(REF, 1, 1))[0].message_id
    assert library.found(ASKED) == [CHUNK + 1]
    library.driver.write(Truncate(REF, first))
    library.wait()
    library.until(lambda: library.kept(1) is None)
    assert library.found(ASKED) == []


def test_a_fork_finds_what_its_parent_said(library: Library) -> None:
    library.say(FACT)
    library.wait()
    library.driver.write(Fork(REF, CHILD, None))
    library.wait()
    assert library.found(ASKED, CHILD) == [1]


def test_only_the_newest_messages_keep_vectors(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.semantic.index.MOST_MESSAGES", CHUNK)
    library.say(FACT, *(["Hm."] * (CHUNK - 1)))
    library.wait()
    assert library.found(ASKED) == [1]
    library.say(*(["Hm."] * CHUNK))
    library.wait()
    assert library.found(ASKED) == []
    assert library.kept(0) is None


def test_another_process_continues_from_the_stored_vectors(tmp_path: Path) -> None:
    def make() -> SQLiteStore:
        return SQLiteStore(tmp_path / "context.db", extract=extract)

    with Driver(make) as driver:
        library = Library(driver)
        library.say(FACT)
        library.wait()
        before = library.kept()
        library.close()
    assert decoded(before) is not None
    with Driver(make) as driver:
        library = Library(driver)
        assert library.found(ASKED) == [1]
        library.say("My sister plays the cello.")
        library.wait()
        assert library.found("Who in the family makes music?")[0] == 2
        library.close()


def test_vectors_made_by_another_process_are_not_made_again(library: Library) -> None:
    library.say("The bus leaves at nine.")
    library.wait()
    other = library.driver.run(library.begin())
    library.driver.run(other.look_up(REF))
    library.say(FACT)
    library.wait()
    made = library.kept()
    library.driver.run(_note(other))
    library.until(lambda: library.driver.run(other.waiting()) == 0)
    assert library.kept() == made
    assert not other.has_model
    library.driver.run(other.close())


def test_damaged_vectors_are_rebuilt(tmp_path: Path) -> None:
    with Driver(lambda: SQLiteStore(tmp_path / "context.db", extract=extract)) as driver:
        library = Library(driver)
        driver.write(SaveState(REF, f"{NAME}0", b"\x93\x01\x02"))
        library.say(FACT)
        library.wait()
        assert library.found(ASKED) == [1]
        library.close()


def test_chinese_is_found_by_its_words_as_before(library: Library) -> None:
    library.say("我们把备用钥匙放在蓝色的茶壶里。", FACT, "公交车九点出发。")
    library.wait()
    query = SearchQuery(text="备用钥匙在哪里？")
    by_words = [hit.position for hit in library.driver.run(library.searching.search(REF, query)).hits]
    assert library.found("备用钥匙在哪里？") == by_words == [1]


class Agents:
    """Sessions of agents, searched all together."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def found(self, text: str, *without: SessionRef, agent: str | None = None) -> list[tuple[str, int]]:
        query = SearchQuery(text=text, meaning=True, agent_id=agent)
        search = self._library.searching.search_sessions("host", query, without=without)
        return [(hit.ref.session_id, hit.position) for hit in self._library.driver.run(search).hits]


def test_other_sessions_are_searched_by_meaning_too(library: Library) -> None:
    library.say(FACT)
    library.say("My sister plays the cello.", ref=OTHER)
    library.wait()
    assert Agents(library).found(ASKED) == [("main", 1)]
    assert Agents(library).found(ASKED, REF) == []


def test_messages_shared_by_a_fork_are_found_once_and_excluded_with_their_parent(library: Library) -> None:
    library.say(FACT)
    library.driver.write(Fork(REF, CHILD, None))
    library.wait()
    library.until(lambda: library.kept(0, CHILD) is not None)
    assert Agents(library).found(ASKED) == [("main", 1)]
    assert Agents(library).found(ASKED, REF) == []


def test_sessions_of_other_agents_are_not_searched(library: Library) -> None:
    library.say(FACT, agent="ann")
    library.wait()
    assert Agents(library).found(ASKED, agent="ann") == [("main", 1)]
    assert Agents(library).found(ASKED, agent="bob") == []
