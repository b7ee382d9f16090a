"""Searches of all sessions that an agent may read."""

import pytest

from sidecar.store.search import SearchError, SearchKind, SearchQuery, SessionsResult
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork, Truncate
from tests.store_kit import Driver, reply, user

KINDS: list[SearchKind] = ["words", "literal", "regex"]


def ref(name: str, namespace: str = "host") -> SessionRef:
    return SessionRef(namespace, name)


def search_sessions(
    store: Driver, text: str, kind: SearchKind = "words", *, without: tuple[str, ...] = (), **members: object
) -> SessionsResult:
    query = SearchQuery(text=text, kind=kind, **members)  # pyright: ignore
    left_out = [ref(name) for name in without]
    return store.run(store.store.search_sessions("host", query, without=left_out))  # pyright: ignore


def places(store: Driver, text: str, kind: SearchKind = "words", **members: object) -> list[tuple[str, int]]:
    """The sessions and positions that are found."""
    found = search_sessions(store, text, kind, **members)  # pyright: ignore
    assert found.complete
    return [(hit.ref.session_id, hit.position) for hit in found.hits]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_all_sessions_of_the_namespace_are_found(store: Driver, kind: SearchKind) -> None:
    store.append(ref("a"), "a plum", "a pear")
    store.append(ref("b"), "nothing", "plum")
    store.append(ref("c", "elsewhere"), "plum")
    assert sorted(places(store, "plum", kind)) == [("a", 1), ("b", 2)]
    assert places(store, "quince", kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_finds_its_own_messages_and_those_that_are_nobodys(store: Driver, kind: SearchKind) -> None:
    store.append(ref("ann's"), "plum", agent_id="ann")
    store.append(ref("bob's"), "plum", agent_id="bob")
    store.append(ref("nobody's"), "plum")
    assert sorted(places(store, "plum", kind, agent_id="ann")) == [("ann's", 1), ("nobody's", 1)]
    assert sorted(places(store, "plum", kind, agent_id="eve")) == [("nobody's", 1)]
    assert len(places(store, "plum", kind)) == 3
    store.append(ref("nobody's"), "pear", agent_id="bob")
    assert places(store, "plum", kind, agent_id="eve") == []


def test_the_best_comes_first_whatever_session_it_is_in(store: Driver) -> None:
    store.append(ref("a"), "kiwi and a long text about many other things", "lemon")
    store.append(ref("b"), "kiwi lemon", "kiwi")
    found = search_sessions(store, "kiwi lemon")
    assert (found.hits[0].ref, found.hits[0].position) == (ref("b"), 1)
    assert len(found.hits) == 4
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def test_newer_sessions_come_first_among_equals(store: Driver) -> None:
    for name in "abc":
        store.append(ref(name), "plum", "plum")
    assert places(store, "plum") == [(name, position) for name in "cba" for position in (2, 1)]


@pytest.mark.parametrize("kind", ["literal", "regex"])
def test_texts_are_found_in_order_or_from_the_newest_backwards(store: Driver, kind: SearchKind) -> None:
    for name in "abc":
        store.append(ref(name), "plum", "plum")
    in_order = [(name, position) for name in "abc" for position in (1, 2)]
    assert places(store, "lum", kind) == in_order
    assert places(store, "lum", kind, newest_first=True) == in_order[::-1]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 4])
def test_pages_follow_each_other_while_messages_and_sessions_are_added(
    store: Driver, newest_first: bool, limit: int
) -> None:
    for name in "abcd":
        store.append(ref(name), *["plum" if index % 3 else "pear" for index in range(7)])
    whole = places(store, "plum", "literal", limit=99, newest_first=newest_first)
    pages: list[tuple[str, int]] = []
    cursor = None
    for _ in range(len(whole) + 1):
        found = search_sessions(
            store, "plum", "literal", limit=limit, newest_first=newest_first, cursor=cursor
        )
        pages += [(hit.ref.session_id, hit.position) for hit in found.hits]
        cursor = found.next_cursor
        if cursor is None:
            break
        store.append(ref("e"), "plum")
    assert (pages, cursor) == (whole, None)


def test_a_cursor_into_a_session_that_was_rewritten_is_refused(store: Driver) -> None:
    store.append(ref("a"), *["plum"] * 5)
    cursor = search_sessions(store, "plum", "literal", limit=2).next_cursor
    store.write(Truncate(ref("a"), store.ids(ref("a"))[3]))
    with pytest.raises(SearchError, match="begin anew"):
        search_sessions(store, "plum", "literal", cursor=cursor)


def test_a_cursor_behind_a_session_that_was_erased_goes_on_with_the_next(store: Driver) -> None:
    for name in "abc":
        store.append(ref(name), "plum")
    cursor = search_sessions(store, "plum", "literal", limit=1).next_cursor
    store.write(Delete(ref("a")))
    assert places(store, "plum", "literal", cursor=cursor) == [("b", 1), ("c", 1)]


@pytest.mark.parametrize(
    "members", [{"first": 2}, {"last": 9}, {"cursor": "s1.2.3"}, {"kind": "literal", "cursor": "s1.2.3"}]
)
def test_what_only_one_session_can_answer_is_refused(store: Driver, members: dict[str, object]) -> None:
    with pytest.raises(SearchError):
        search_sessions(store, "plum", **members)  # pyright: ignore


@pytest.mark.parametrize("kind", KINDS)
def test_what_forks_share_is_found_once_in_the_session_that_it_was_stored_in(
    store: Driver, kind: SearchKind
) -> None:
    store.append(ref("parent"), "plum one", "plum two", "plum three")
    store.write(Fork(ref("parent"), ref("child"), store.ids(ref("parent"))[1]))
    store.append(ref("child"), "plum four")
    store.write(Fork(ref("child"), ref("grandchild"), None))
    wanted = [("child", 3), ("parent", 1), ("parent", 2), ("parent", 3)]
    assert sorted(places(store, "plum", kind)) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_tells_what_it_shares_with_a_session_that_may_not_be_read(
    store: Driver, kind: SearchKind
) -> None:
    store.append(ref("parent"), "plum one", "plum two", "plum three", agent_id="ann")
    store.write(Fork(ref("parent"), ref("child"), store.ids(ref("parent"))[1], agent_id="ann"))
    store.write(Fork(ref("parent"), ref("other"), store.ids(ref("parent"))[0], agent_id="ann"))
    assert sorted(places(store, "plum", kind, agent_id="bob")) == []
    store.write(Delete(ref("parent")))
    assert sorted(places(store, "plum", kind, agent_id="ann")) == [("child", 1), ("child", 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_that_are_left_out_take_with_them_what_others_share_with_them(
    store: Driver, kind: SearchKind
) -> None:
    store.append(ref("parent"), "plum one", "plum two", "plum three")
    store.write(Fork(ref("parent"), ref("child"), store.ids(ref("parent"))[1]))
    store.append(ref("child"), "plum four")
    store.append(ref("other"), "plum")
    assert sorted(places(store, "plum", kind, without=("child",))) == [("other", 1), ("parent", 3)]
    assert sorted(places(store, "plum", kind, without=("parent",))) == [("child", 3), ("other", 1)]
    assert places(store, "plum", kind, without=("parent", "child", "other")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_roles_turns_and_times_narrow_a_search_of_all_sessions(store: Driver, kind: SearchKind) -> None:
    for name in "ab":
        store.append(
            ref(name), user("plum", timestamp_ms=1000, turn_id="first"), reply("plum", timestamp_ms=2000)
        )
    assert sorted(places(store, "plum", kind, roles=("user",))) == [("a", 1), ("b", 1)]
    assert sorted(places(store, "plum", kind, since_ms=1500)) == [("a", 2), ("b", 2)]
    assert len(places(store, "plum", kind, turn_id="first")) == 4
    assert places(store, "plum", kind, turn_id="second") == []
