"""Ways to break searches."""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace
from pytest import MonkeyPatch

from sidecar.store.search import SearchError, SearchHit, SearchQuery, SearchResult
from sidecar.store.search.terms import STOP_WORDS
from sidecar.store.stored import SessionRef
from tests.conformance.dictionary.store import MemoryStore
from tests.conformance.kept_store import KeptStore


def _asked(patch: MonkeyPatch, change: Callable[[SearchQuery], SearchQuery]) -> None:
    """Change what is looked for."""
    search = MemoryStore.search
    patch.setattr(
        KeptStore, "search", lambda store, ref, query: search(store, ref, change(query)), raising=False
    )


def _found(patch: MonkeyPatch, change: Callable[[SearchResult, SearchQuery], SearchResult]) -> None:
    """Change what was found."""
    search = MemoryStore.search

    async def changed(store: Any, ref: SessionRef, query: SearchQuery) -> SearchResult:
        return change(await search(store, ref, query), query)

    patch.setattr(KeptStore, "search", changed, raising=False)


def _plainly(patch: MonkeyPatch, kind: str, holds: Callable[[str, str], bool]) -> None:
    """Answer one kind of search by looking at every message, oldest first, all of them equal."""
    search = MemoryStore.search

    async def changed(store: Any, ref: SessionRef, query: SearchQuery) -> SearchResult:
        if query.kind != kind:
            return await search(store, ref, query)
        messages = await store.messages(ref, 1, 1 << 30)
        hits = [SearchHit(each.position, 1.0) for each in messages if holds(query.text, each.body.decode())]
        return SearchResult(hits[: query.limit], True)

    patch.setattr(KeptStore, "search", changed, raising=False)


def finds_words_as_they_are_written(patch: MonkeyPatch) -> None:
    _plainly(patch, "words", lambda asked, text: bool(set(asked.split()) & set(text.split())))


def finds_words_among_others_alone(patch: MonkeyPatch) -> None:
    _plainly(
        patch,
        "words",
        lambda asked, text: not set(asked.lower().split()).isdisjoint(text.lower().split()[1:]),
    )


def needs_every_word(patch: MonkeyPatch) -> None:
    _plainly(patch, "words", lambda asked, text: set(asked.split()) <= set(text.split()))


def ranks_backwards(patch: MonkeyPatch) -> None:
    _found(
        patch,
        lambda found, query: found._replace(hits=found.hits[::-1]) if query.kind == "words" else found,
    )


def fails_for_odd_questions(patch: MonkeyPatch) -> None:
    def change(query: SearchQuery) -> SearchQuery:
        query.text.encode()
        return query

    _asked(patch, change)


def never_looks_for_stop_words(patch: MonkeyPatch) -> None:
    def change(query: SearchQuery) -> SearchQuery:
        if query.kind == "words":
            telling = [word for word in query.text.split() if word not in STOP_WORDS]
            return replace(query, text=" ".join(telling))
        return query

    _asked(patch, change)


def ranks_by_the_beginning_of_a_question(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, text=query.text[:200]))


def begins_every_page_anew(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, cursor=None))


def finds_something_where_there_is_nothing(patch: MonkeyPatch) -> None:
    _found(patch, lambda found, _: found if found.hits else found._replace(hits=[SearchHit(1, 1.0)]))


def finds_what_was_stored_a_while_ago(patch: MonkeyPatch) -> None:
    search = MemoryStore.search

    async def late(store: Any, ref: SessionRef, query: SearchQuery) -> SearchResult:
        head = await store.session(ref)
        return await search(store, ref, replace(query, last=max(0, head.message_count - 1) if head else 0))

    patch.setattr(KeptStore, "search", late, raising=False)


def finds_whole_words_alone(patch: MonkeyPatch) -> None:
    _plainly(patch, "literal", lambda asked, text: asked.lower() in re.split(r"\W+", text.lower()))


def finds_literals_in_their_own_case(patch: MonkeyPatch) -> None:
    _plainly(patch, "literal", lambda asked, text: asked in text)


def finds_ascii_alone(patch: MonkeyPatch) -> None:
    _plainly(patch, "literal", lambda asked, text: asked.isascii() and asked.lower() in text.lower())


def takes_literals_for_patterns(patch: MonkeyPatch) -> None:
    def holds(asked: str, text: str) -> bool:
        return re.search(re.escape(asked).replace("%", ".*").replace("_", "."), text) is not None

    _plainly(patch, "literal", holds)


def always_begins_with_the_oldest(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, newest_first=False))


def forgets_how_far_it_came(patch: MonkeyPatch) -> None:
    _found(patch, lambda found, _: found._replace(next_cursor=None))


def _instead_of_errors(patch: MonkeyPatch, kinds: Iterable[str]) -> None:
    search = MemoryStore.search

    async def lenient(store: Any, ref: SessionRef, query: SearchQuery) -> SearchResult:
        try:
            return await search(store, ref, query)
        except SearchError:
            if query.kind in kinds:
                return SearchResult([], True)
            raise

    patch.setattr(KeptStore, "search", lenient, raising=False)


def finds_nothing_in_place_of_errors(patch: MonkeyPatch) -> None:
    _instead_of_errors(patch, ("words", "literal", "regex"))


def finds_expressions_in_folded_text(patch: MonkeyPatch) -> None:
    def holds(asked: str, text: str) -> bool:
        return len(text) < 1000 and re.search(asked.lower(), text.lower()) is not None

    _plainly(patch, "regex", holds)


def hangs_on_nested_repetitions(patch: MonkeyPatch) -> None:
    search = MemoryStore.search

    async def hangs(store: Any, ref: SessionRef, query: SearchQuery) -> SearchResult:
        if "+)+" in query.text:
            await asyncio.Event().wait()
        return await search(store, ref, query)

    patch.setattr(KeptStore, "search", hangs, raising=False)


def searches_the_whole_session(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, first=1, last=None))


def searches_every_role(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, roles=()))


def searches_every_tool(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, tool=None))


def searches_every_turn(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, turn_id=None))


def searches_every_time(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, since_ms=None, until_ms=None))


def searches_for_every_agent(patch: MonkeyPatch) -> None:
    _asked(patch, lambda query: replace(query, agent_id=None))
