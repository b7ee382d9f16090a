"""Whatever was written, searches find what a look at every message finds."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sidecar.store import open_store
from sidecar.store.search import SearchQuery
from sidecar.store.search.terms import document_terms, fold, question
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork, Truncate
from tests.postgres_server import shared_server
from tests.search_kit import index_in_small_portions, positions, rest, search
from tests.store_kit import Driver, user

REFS = [SessionRef("host", name) for name in "abc"]
PIECES = [
    "apple", "Apples", "pineapple", "fooBar", "foo_bar.py", "/etc/foo/bar", "12", "E12",
    "x" * 70, "ss", "苹果", "果", "吃苹", "りんご", "사과", "é",
    "e\u0301", "ﬁ", "ß", "İ", "I\u0307", "\0", "\n", " ", " ", "-",
    "\ud800", "क्षि", "ก็", "😀",
]  # fmt: skip
TEXTS = (
    st.lists(st.sampled_from(PIECES), max_size=8)
    .map("".join)
    .map(lambda text: text.encode("utf-8", "replace").decode())
)
NEEDLES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join) | st.text(
    min_size=1, max_size=3
)


class SearchMachine(RuleBasedStateMachine):
    """Applies the same writes to a store and to lists of texts, and searches both."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        url = shared_server().fresh() if self.kind == "postgres" else None
        self.driver = Driver(lambda: open_store(self.kind, path, url=url))
        self.driver.__enter__()
        self.texts: dict[SessionRef, list[str]] = {ref: [] for ref in REFS}

    def teardown(self) -> None:
        self.driver.__exit__(None, None, None)
        self.folder.cleanup()

    @rule(ref=st.sampled_from(REFS), added=st.lists(TEXTS, min_size=1, max_size=12))
    def append(self, ref: SessionRef, added: list[str]) -> None:
        self.driver.append(ref, *added)
        self.texts[ref] += added

    @rule(ref=st.sampled_from(REFS), text=TEXTS, data=st.data())
    def insert(self, ref: SessionRef, text: str, data: st.DataObject) -> None:
        after = data.draw(st.integers(0, len(self.texts[ref])))
        self.driver.append(ref, user(text, after=after))
        self.texts[ref].insert(after, text)

    @rule(ref=st.sampled_from(REFS), data=st.data())
    def truncate(self, ref: SessionRef, data: st.DataObject) -> None:
        if not self.texts[ref]:
            return
        count = data.draw(st.integers(0, len(self.texts[ref])))
        self.driver.write(Truncate(ref, self.driver.ids(ref)[count - 1] if count else None))
        del self.texts[ref][count:]

    @rule(parent=st.sampled_from(REFS), child=st.sampled_from(REFS), added=st.lists(TEXTS), data=st.data())
    def fork(self, parent: SessionRef, child: SessionRef, added: list[str], data: st.DataObject) -> None:
        if parent == child or not self.texts[parent]:
            return
        self.driver.write(Delete(child))
        count = data.draw(st.integers(1, len(self.texts[parent])))
        self.driver.write(Fork(parent, child, self.driver.ids(parent)[count - 1]))
        self.texts[child] = self.texts[parent][:count] + added
        if added:
            self.driver.append(child, *added)

    @rule(ref=st.sampled_from(REFS))
    def delete(self, ref: SessionRef) -> None:
        self.driver.write(Delete(ref))
        self.texts[ref] = []

    @rule()
    def let_it_index(self) -> None:
        rest(self.driver)

    @rule(ref=st.sampled_from(REFS), needle=NEEDLES, backwards=st.booleans(), data=st.data())
    def find_literal(self, ref: SessionRef, needle: str, backwards: bool, data: st.DataObject) -> None:
        first = data.draw(st.integers(1, 10))
        found = positions(
            self.driver, needle, "literal", ref=ref, limit=1000, first=first, newest_first=backwards
        )
        wanted = [
            position
            for position, text in enumerate(self.texts[ref], 1)
            if fold(needle) in fold(text) and position >= first
        ]
        assert found == (wanted[::-1] if backwards else wanted)

    @rule(ref=st.sampled_from(REFS), asked=NEEDLES)
    def find_words(self, ref: SessionRef, asked: str) -> None:
        found = search(self.driver, asked, ref=ref, limit=1000)
        terms = set(question(asked).required + question(asked).helpful)
        lone = {term for term in terms if term in ("果", "苹", "吃", "り", "ん", "ご", "사", "과")}
        wanted = {
            position
            for position, text in enumerate(self.texts[ref], 1)
            for known in [document_terms(text).counts]
            if not terms.isdisjoint(known)
            or any(one in term for one in lone for term in known if len(term) < 3)
        }
        assert {hit.position for hit in found.hits} == wanted
        assert found.complete

    @rule(ref=st.sampled_from(REFS), piece=st.sampled_from(["apple", "E12", "foo_bar", "x" * 70]))
    def find_expression(self, ref: SessionRef, piece: str) -> None:
        found = positions(self.driver, piece.replace("_", r"[_]") + r"\w*", "regex", ref=ref, limit=1000)
        assert found == [index for index, text in enumerate(self.texts[ref], 1) if piece in text]

    @rule(needle=NEEDLES, backwards=st.booleans(), without=st.none() | st.sampled_from(REFS))
    def find_literal_anywhere(self, needle: str, backwards: bool, without: SessionRef | None) -> None:
        query = SearchQuery(text=needle, kind="literal", limit=1000, newest_first=backwards)
        left_out = () if without is None else (without,)
        found = self.driver.run(
            self.driver.store.search_sessions("host", query, without=left_out)  # pyright: ignore
        )
        hidden = set[tuple[int, str]]() if without is None else set(enumerate(self.texts[without], 1))
        wanted = {
            (position, text)
            for ref, texts in self.texts.items()
            if ref != without
            for position, text in enumerate(texts, 1)
            if fold(needle) in fold(text)
        }
        told = {(hit.position, self.texts[hit.ref][hit.position - 1]) for hit in found.hits}
        assert wanted - hidden <= told <= wanted
        assert found.complete

    @rule(asked=st.sampled_from(["apple", "foo_bar", "苹果", "apple E12"]))
    def find_words_anywhere(self, asked: str) -> None:
        query = SearchQuery(text=asked, limit=1000)
        found = self.driver.run(self.driver.store.search_sessions("host", query))  # pyright: ignore
        terms = set(question(asked).required + question(asked).helpful)
        wanted = {
            (position, text)
            for texts in self.texts.values()
            for position, text in enumerate(texts, 1)
            if not terms.isdisjoint(document_terms(text).counts)
        }
        assert {(hit.position, self.texts[hit.ref][hit.position - 1]) for hit in found.hits} == wanted
        assert found.complete

    @invariant()
    def an_empty_question_finds_nothing(self) -> None:
        assert search(self.driver, "", ref=REFS[0]).hits == []


SLOW = [HealthCheck.too_slow]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "examples"), [("memory", 20), ("sqlite", 50), ("postgres", 20)])
def test_searches_find_what_a_look_at_every_message_finds(
    kind: str, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_in_small_portions(monkeypatch)
    machine = type("Machine", (SearchMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=SLOW
        ),
    )
