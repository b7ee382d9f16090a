"""A SQLite store leaves no erased text on the disk."""

import tempfile
from pathlib import Path

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.stored import SessionRef, SummaryNode
from sidecar.store.writes import AddSummary, Delete, Fork, SaveState, Truncate
from tests.store_kit import REF, Driver, user

SECRET = "kumquat-marmalade"
OTHER = SessionRef("host", "other")


def bytes_on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def fill(store: Driver, ref: SessionRef, count: int) -> None:
    """Leave the secret wherever text is kept, in rows that share pages with others and in long ones."""
    for index in range(count):
        length = (index * 37) % 3000
        store.append(OTHER, "innocent " * 20)
        revision = store.append(
            ref, user(f"{SECRET} {index} " + "x" * length, message_id=f"{SECRET}-{index}"),
            session_key=f"{SECRET} key", advancement_key=f"{SECRET} {index}",
        ).head.revision  # fmt: skip
    store.append(ref, SECRET * 5000)
    store.write(SaveState(ref, "pins", SECRET.encode()))
    node = SummaryNode(
        node_id="n", first_position=1, last_position=2, text=SECRET, tokens=1, quality="q", created_ms=1
    )
    assert store.write(AddSummary(ref, node, revision=revision))


def test_deletion_leaves_nothing_of_the_text_in_any_file(tmp_path: Path) -> None:
    with Driver(lambda: SQLiteStore(tmp_path / "store.db")) as store:
        fill(store, REF, 120)
        assert SECRET.encode() in bytes_on_disk(tmp_path)
        store.write(Delete(REF))
        assert SECRET.encode() not in bytes_on_disk(tmp_path)
        assert len(store.texts(OTHER)) == 120
    assert SECRET.encode() not in bytes_on_disk(tmp_path)


def test_rewriting_history_before_deletion_leaves_nothing_either(tmp_path: Path) -> None:
    with Driver(lambda: SQLiteStore(tmp_path / "store.db")) as store:
        fill(store, REF, 60)
        child = SessionRef("host", "child")
        store.write(Fork(REF, child, None))
        store.append(REF, user(SECRET, after=3), user(SECRET, after=0))
        store.write(Truncate(REF, store.ids(REF)[20]))
        store.append(child, user(SECRET, after=30))
        store.reopen()
        store.write(Delete(REF))
        assert SECRET in store.texts(child)[0]
        store.write(Delete(child))
        assert SECRET.encode() not in bytes_on_disk(tmp_path)


def test_messages_of_a_fork_stay_until_the_fork_is_deleted(tmp_path: Path) -> None:
    with Driver(lambda: SQLiteStore(tmp_path / "store.db")) as store:
        shared, own = "shared-text", "parents-own"
        store.append(REF, shared)
        child = SessionRef("host", "child")
        store.write(Fork(REF, child, None))
        store.append(REF, own)
        store.write(Delete(REF))
        assert own.encode() not in bytes_on_disk(tmp_path)
        assert store.texts(child) == [shared]
        store.write(Delete(child))
        assert shared.encode() not in bytes_on_disk(tmp_path)


def test_text_is_erased_even_if_a_reader_of_another_process_was_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Driver(lambda: SQLiteStore(path)) as store:
        store.append(REF, SECRET)
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchall()
        store.write(Delete(REF))
        reader.execute("ROLLBACK")
        reader.close()
        gone = False
        for _ in range(200):
            # The next pause between two writes is when it is tried again.
            store.append(OTHER, "a")
            gone = gone or SECRET.encode() not in bytes_on_disk(tmp_path)
        assert gone


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9000)), max_size=80), st.permutations(range(5)))
def test_sessions_deleted_one_by_one_leave_nothing_however_their_rows_were_mixed(
    rows: list[tuple[int, int]], order: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder, Driver(lambda: SQLiteStore(Path(folder) / "s.db")) as store:
        for session, size in rows:
            store.append(SessionRef("host", str(session)), f"<secret-{session}>" + "x" * size)
        for session in order:
            store.write(Delete(SessionRef("host", str(session))))
            assert f"<secret-{session}>".encode() not in bytes_on_disk(Path(folder))
