"""Changes derived from two snapshots of a namespace's sessions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from sidecar.server.background.change_watch import MOST, changes, looked
from sidecar.store.stored import SessionHead, SessionRef

HEAD = SessionHead(
    ref=SessionRef("host", "s"),
    uid=7,
    agent_id=None,
    session_key=None,
    message_format="openai",
    message_count=3,
    turn_count=1,
    revision=70,
    created_ms=1,
    updated_ms=100,
)


def head(name: str, uid: int, updated_ms: int, **facts: Any) -> SessionHead:
    return structs.replace(HEAD, ref=SessionRef("host", name), uid=uid, updated_ms=updated_ms, **facts)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"message_count": 4}, "appended"),
        ({"message_count": 4, "revision": 71}, "changed"),
        ({"message_count": 2, "revision": 71}, "changed"),
        ({}, "changed"),
        ({"uid": 8}, "created"),
    ],
    ids=str,
)
def test_what_changed_names_the_reason(facts: dict[str, int], reason: str) -> None:
    known = looked(None, [HEAD])
    later = structs.replace(HEAD, updated_ms=200, **facts)
    assert list(changes(known, [later])) == [("s", reason)]


def test_an_unchanged_session_is_not_reported() -> None:
    assert list(changes(looked(None, [HEAD]), [HEAD])) == []


def test_changes_are_reported_in_the_order_they_happened() -> None:
    known = looked(None, [HEAD])
    newer = [head("c", 9, 300), head("b", 8, 200)]
    assert [name for name, _ in changes(known, [*newer, HEAD])] == ["b", "c"]


def test_a_session_that_moves_up_into_view_is_reported_only_if_it_changed() -> None:
    page = [head(f"s{uid}", uid, 1000 + uid) for uid in range(MOST + 1, 1, -1)]
    known = looked(None, page)
    hidden = head("hidden", 1, 500)
    assert list(changes(known, [*page[1:], hidden])) == []
    assert list(changes(known, [head("hidden", 1, 5000), *page[1:]])) == [("hidden", "changed")]


def test_a_recreated_session_is_reported_as_created_although_it_was_never_in_view() -> None:
    known = looked(looked(None, [HEAD]), [])
    assert list(changes(known, [head("new", 8, 300)])) == [("new", "created")]
