"""No write waits for background work of a SQLite store, however long that takes."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store.records import SessionRecord
from sidecar.store.search import Extract, Searchable
from sidecar.store.sqlite import writer
from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.writes import Delete, SaveState
from tests.search_kit import positions, rest
from tests.stalls import LIMIT_S, Stall, StalledDisk
from tests.store_kit import REF, Driver

MANY = 6 << 20
"""Characters that make a checkpoint due."""


def stalled(stall: Stall) -> Extract:
    """Reads the text of a message; where it is to be indexed, not before it is let go."""

    def extract(_session: SessionRecord, body: bytes) -> Searchable:
        name = threading.current_thread().name
        if name.startswith("store-") and not name.startswith("store-search"):
            stall.wait()
        return Searchable(body.decode(), ())

    return extract


@pytest.fixture
def stall() -> Iterator[Stall]:
    stall = Stall()
    yield stall
    stall.let_go.set()


def write_something(store: Driver) -> None:
    """Several writes, each of which has to be durable before the next one."""
    for number in range(3):
        store.write(SaveState(REF, "epoch", b"%d" % number))
        store.append(REF, f"damson {number}")


def test_writes_go_on_while_the_terms_of_a_message_are_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stall: Stall
) -> None:
    monkeypatch.setattr(writer, "_PAUSE_S", 0.001)
    with Driver(lambda: SQLiteStore(tmp_path / "store.db", extract=stalled(stall))) as store:
        store.append(REF, "plum")
        assert stall.begun.wait(LIMIT_S)
        write_something(store)
        assert positions(store, "damson") == [4, 3, 2]
        stall.let_go.set()
        rest(store)
        assert positions(store, "damson") == [4, 3, 2]


def test_a_message_erased_while_its_terms_were_made_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stall: Stall
) -> None:
    monkeypatch.setattr(writer, "_PAUSE_S", 0.001)
    with Driver(lambda: SQLiteStore(tmp_path / "store.db", extract=stalled(stall))) as store:
        store.append(REF, "kumquatmarmalade")
        assert stall.begun.wait(LIMIT_S)
        store.write(Delete(REF))
        stall.let_go.set()
        store.append(REF, "plum")
        rest(store)
        assert positions(store, "plum") == [1]
        assert positions(store, "kumquatmarmalade") == []
    assert b"kumquat" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_writes_go_on_while_a_checkpoint_waits_for_the_disk(tmp_path: Path, stall: Stall) -> None:
    disk = StalledDisk(stall)
    with Driver(lambda: SQLiteStore(tmp_path / "store.db", vfs=disk.name)) as store:
        disk.armed = True
        store.append(REF, "x" * MANY)
        assert stall.begun.wait(LIMIT_S), "no checkpoint was made"
        write_something(store)
        stall.let_go.set()
        assert store.texts(REF)[1:] == ["damson 0", "damson 1", "damson 2"]


def test_every_word_and_part_of_a_long_message_is_found(tmp_path: Path) -> None:
    text = " ".join(f"number{number}x/plum_{number}.py" for number in range(8_000))
    blob = "".join(chr(97 + (number * number * 7919) % 26) for number in range(200_000))
    assert len(text) > 2 * (64 << 10)
    with Driver(lambda: SQLiteStore(tmp_path / "store.db")) as store:
        store.append(REF, text, f"begin {blob} end")
        rest(store)
        for number in range(0, 8_000, 397):
            assert positions(store, f"number{number}x") == [1]
            assert positions(store, f"plum_{number}.py") == [1]
            assert positions(store, f"umber{number}x/plum", "literal") == [1]
        for start in range(2 * (64 << 10) - 30, 2 * (64 << 10) + 30, 7):
            assert 2 in positions(store, blob[start : start + 20], "literal")
