"""A long session is gone at once and erased behind the answer, in steps that let other writes through."""

from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.erasure import AT_ONCE, EXPIRED, STEP
from sidecar.store.search import SearchQuery
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork
from tests.search_kit import index_in_small_portions, positions, rest
from tests.store_kit import REF, Driver

OTHER = SessionRef("host", "other")
LONG = AT_ONCE + 30 * STEP


def texts(count: int) -> list[str]:
    return [f"kumquat{number}marmalade plum" for number in range(count)]


def set_aside(store: Driver) -> list[str]:
    """The sessions that are still being erased."""
    heads, _ = store.run(store.store.sessions(EXPIRED, 10, None))
    return [head.ref.session_id for head in heads]


def wait_until_erased(store: Driver) -> None:
    store.run(store.store.erased())  # pyright: ignore[reportAttributeAccessIssue]


def test_nothing_of_a_long_session_is_found_from_the_answer_on(store: Driver) -> None:
    store.append(REF, *texts(LONG))
    rest(store)
    assert store.write(Delete(REF)) is True
    assert store.run(store.store.session(REF)) is None
    found = store.run(store.store.search_sessions("host", SearchQuery(text="plum")))  # pyright: ignore
    assert found.hits == []
    assert positions(store, "umqua", "literal") == []
    assert store.write(Delete(REF)) is False
    store.append(REF, "plum again")
    assert positions(store, "plum") == [1]
    wait_until_erased(store)
    assert set_aside(store) == []
    assert positions(store, "plum") == [1]


def test_other_writes_are_answered_while_a_long_session_is_erased(store: Driver) -> None:
    store.append(REF, *texts(LONG))
    store.write(Delete(REF))
    store.append(OTHER, "plum")
    assert set_aside(store) != [], "the other write waited until everything was erased"
    wait_until_erased(store)
    assert store.texts(OTHER) == ["plum"]


def test_a_fork_keeps_what_it_shares_with_a_long_session_that_is_erased(store: Driver) -> None:
    store.append(REF, *texts(LONG))
    store.write(Fork(REF, OTHER, store.ids(REF)[AT_ONCE + STEP // 2]))
    kept = store.texts(OTHER)
    store.write(Delete(REF))
    assert store.texts(OTHER) == kept
    wait_until_erased(store)
    assert store.texts(OTHER) == kept
    rest(store)
    assert positions(store, "kumquat7marmalade", ref=OTHER) == [8]


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


@pytest.mark.parametrize("indexed", [True, False])
def test_a_clean_stop_leaves_no_word_of_a_long_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    path = tmp_path / "state" / "store.db"
    if indexed:
        index_in_small_portions(monkeypatch)
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(OTHER, *["nothing of interest"] * 300)
        store.append(REF, *texts(LONG))
        if indexed:
            rest(store)
        assert b"kumquat" in bytes_on_disk(path)
        store.write(Delete(REF))
    assert b"kumquat" not in bytes_on_disk(path)
    with Driver(lambda: open_store("sqlite", path)) as store:
        assert len(positions(store, "interest", ref=OTHER, limit=1000)) == 300


def test_what_a_process_left_of_a_long_session_is_erased_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "state" / "store.db"
    left = path.with_name("left.db")
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(REF, *texts(LONG))
        store.write(Delete(REF))
        for suffix in ("", "-wal"):
            file = path.with_name(path.name + suffix)
            left.with_name(left.name + suffix).write_bytes(file.read_bytes())
    with Driver(lambda: open_store("sqlite", left)) as store:
        assert store.run(store.store.session(REF)) is None
        wait_until_erased(store)
        assert set_aside(store) == []
    assert b"kumquat" not in left.read_bytes()
