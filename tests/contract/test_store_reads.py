"""Reads of messages and sessions."""

import pytest

from sidecar.store.contract import SessionHead, SessionRef, StoreUnavailable
from tests.store_kit import REF, Driver, reply, texts, user


def test_a_session_that_is_not_there_reads_as_empty(store: Driver) -> None:
    reads = store.store
    assert store.run(reads.session(REF)) is None
    assert store.run(reads.messages(REF, 1, 10)) == []
    assert store.run(reads.messages_of_role(REF, "system")) == []
    assert store.run(reads.message(REF, "m")) is None
    assert store.run(reads.keyed(REF, 1, 10)) == []
    assert store.run(reads.turn_start(REF, 1)) is None
    assert store.run(reads.summaries(REF)) == []


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 3, "abc"), (2, 2, "b"), (3, 99, "cd"), (-5, 1, "a"), (5, 9, ""), (3, 2, ""), (0, 0, "")],
)
def test_a_range_of_positions_includes_both_ends(store: Driver, first: int, last: int, expected: str) -> None:
    store.append(REF, *"abcd")
    assert texts(store.messages(REF, first, last)) == list(expected)


def test_messages_of_one_role_are_found_in_order(store: Driver) -> None:
    store.append(
        REF, reply("s1", "system"), "u", reply("s2", "system"), reply("x", "critic"), reply("t", "tool")
    )
    found = {
        role: texts(store.run(store.store.messages_of_role(REF, role)))
        for role in ("system", "user", "critic", "tool", "assistant", "s")
    }
    assert found == {
        "system": ["s1", "s2"], "user": ["u"], "critic": ["x"], "tool": ["t"], "assistant": [], "s": [],
    }  # fmt: skip


def test_a_session_of_one_namespace_is_not_read_from_another(store: Driver) -> None:
    message_id = store.append(REF, "a").items[0].message_id
    other = SessionRef("elsewhere", REF.session_id)
    assert store.messages(other) == []
    assert store.run(store.store.message(other, message_id)) is None


def test_keyed_messages_tell_given_ids_from_made_up_ones(store: Driver) -> None:
    store.append(REF, "a", user("b", message_id="host", turn_id="x"), reply("c", inner_id="in"))
    made_up, given, inner = store.run(store.store.keyed(REF, 1, 3))
    assert (made_up.host_id, made_up.message_id) == (None, store.ids(REF)[0])
    assert (given.host_id, given.message_id, given.turn_id) == ("host", "host", "x")
    assert (inner.inner_id, inner.facts) == ("in", None)


def test_the_head_counts_messages_and_turns(store: Driver) -> None:
    store.append(REF, "a", reply("b"), "c", agent_id="ann", session_key="key")
    head = store.run(store.store.session(REF))
    assert head is not None
    assert (head.ref, head.message_count, head.turn_count) == (REF, 3, 2)
    assert (head.agent_id, head.session_key, head.message_format) == ("ann", "key", "openai")


def test_a_read_sees_every_write_whose_done_has_run(store: Driver) -> None:
    for count in range(1, 20):
        result = store.append(REF, "a")
        assert store.run(store.store.session(REF)) == result.head
        assert len(store.messages(REF)) == count


def listed(store: Driver, namespace: str | None, limit: int) -> list[list[SessionHead]]:
    pages: list[list[SessionHead]] = []
    cursor = None
    while True:
        page, cursor = store.run(store.store.sessions(namespace, limit, cursor))
        pages.append(page)
        if cursor is None:
            return pages


def test_sessions_are_listed_newest_change_first_page_by_page(store: Driver) -> None:
    refs = [SessionRef("host", f"s{index}") for index in range(7)]
    for ref in refs:
        store.append(ref, "a")
    store.append(refs[2], "b")
    pages = listed(store, "host", 3)
    assert [len(page) for page in pages] == [3, 3, 1]
    heads = [head for page in pages for head in page]
    assert {head.ref for head in heads} == set(refs)
    stamps = [(head.updated_ms, head.uid) for head in heads]
    assert stamps == sorted(stamps, reverse=True)


def test_a_page_that_ends_the_list_has_no_cursor(store: Driver) -> None:
    for index in range(4):
        store.append(SessionRef("host", f"s{index}"), "a")
    assert [len(page) for page in listed(store, "host", 2)] == [2, 2]


def test_a_list_is_of_one_namespace_or_of_all(store: Driver) -> None:
    store.append(REF, "a")
    store.append(SessionRef("elsewhere", "b"), "b")
    assert [head.ref for head in listed(store, "host", 9)[0]] == [REF]
    assert len(listed(store, None, 9)[0]) == 2


@pytest.mark.parametrize("cursor", ["", "1", "x.y", "1.2.3", "-1.2", "1." + "9" * 30])
def test_a_cursor_that_is_not_ours_is_refused(store: Driver, cursor: str) -> None:
    with pytest.raises(ValueError, match="no cursor"):
        store.run(store.store.sessions(None, 5, cursor))


def test_a_closed_store_neither_reads_nor_writes(store: Driver) -> None:
    store.run(store.store.close())
    with pytest.raises(StoreUnavailable):
        store.run(store.store.session(REF))
    with pytest.raises(StoreUnavailable):
        store.append(REF, "a")
