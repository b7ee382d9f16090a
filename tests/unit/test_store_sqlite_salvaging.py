"""Salvaging a damaged store file without SQLite."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.store.errors import StoreUnavailable
from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.sqlite.upkeep.salvage import Salvage, SavedSession
from sidecar.store.stored import SessionRef, StoredMessage
from sidecar.store.writes import Delete, Fork, Truncate
from tests.store_kit import REF, Driver, reply, user

OTHER, CHILD, GONE = (SessionRef("host", name) for name in ("other", "child", "gone"))
PAGE = 8192


def salvaged(path: Path) -> dict[SessionRef, tuple[SavedSession, list[StoredMessage]]]:
    """Everything that is left in a file."""
    salvage = Salvage(path, lambda step, done, total: None)
    try:
        return {saved.owner.ref: (saved, list(messages)) for saved, messages in salvage.sessions()}
    finally:
        salvage.close()


def fill(store: Driver, seed: int = 0) -> None:
    """Keep rows of every length and kind, some shared, some inserted, some gone."""
    chance = random.Random(seed)
    for number in range(60):
        size = chance.choice([0, 10, 700, 4000, 9000, 40_000])
        store.append(
            chance.choice([REF, OTHER, GONE]),
            user(f"u{number}" + "x" * size, message_id=f"id {number}" if number % 3 else None),
            reply("y" * size, heartbeat=number % 7 == 0, inner_id=f"\u4f60{number}"),
            reply("z", turn_id="own" if number % 5 == 0 else None),
        )
    store.write(Fork(REF, CHILD, store.ids(REF)[5]))
    store.append(CHILD, "of the child")
    store.append(REF, user("between", after=2))
    store.write(Truncate(OTHER, store.ids(OTHER)[-3]))
    store.write(Delete(GONE))


def copy_of_open(path: Path, folder: Path) -> Path:
    """The files of a store in use, as a crash would leave them."""
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", folder)
    return folder / path.name


@pytest.mark.parametrize("seed", range(3))
def test_everything_is_read_from_a_sound_file_and_its_log(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    with Driver(lambda: SQLiteStore(path)) as store:
        fill(store, seed)
        expected = {ref: store.messages(ref) for ref in (REF, OTHER, CHILD)}
        copies = [copy_of_open(path, tmp_path / "crashed")]
    copies.append(path)
    for copy in copies:
        found = salvaged(copy)
        assert {ref: messages for ref, (_, messages) in found.items()} == expected
        assert all(saved.found == saved.message_count for saved, _ in found.values())


def test_a_file_without_its_first_page_still_has_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Driver(lambda: SQLiteStore(path)) as store:
        fill(store)
        expected = {ref: store.messages(ref) for ref in (REF, OTHER, CHILD)}
    path.write_bytes(bytes(PAGE) + path.read_bytes()[PAGE:])
    assert {ref: messages for ref, (_, messages) in salvaged(path).items()} == expected


def test_messages_whose_session_is_lost_are_kept_under_a_name_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Driver(lambda: SQLiteStore(path)) as store:
        store.append(REF, *[user(f"text {n}", message_id=f"m{n}") for n in range(20)])
        uid = store.run(store.store.session(REF)).uid  # pyright: ignore[reportOptionalMemberAccess]
    content = path.read_bytes()
    rows = next(at for at in range(0, len(content), PAGE) if b"hostmainopenai" in content[at : at + PAGE])
    path.write_bytes(content[:rows] + b"\x55" * PAGE + content[rows + PAGE :])
    found = salvaged(path)
    saved, messages = found[SessionRef("recovered", f"session-{uid}")]
    assert [message.message_id for message in messages] == [f"m{n}" for n in range(20)]
    assert (saved.message_count, saved.owner.message_format) == (None, None)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_damage_anywhere_takes_no_message_of_a_page_that_it_does_not_touch(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Driver(lambda: SQLiteStore(path)) as store:
            bodies = [f"<{number}>" + "x" * (number * 37 % 3000) for number in range(90)]
            store.append(REF, *bodies)
        content = bytearray(path.read_bytes())
        hit = data.draw(st.sets(st.integers(0, len(content) // PAGE - 1), min_size=1, max_size=5))
        for page in hit:
            junk = data.draw(st.binary(min_size=1, max_size=200))
            start = page * PAGE + data.draw(st.integers(0, PAGE - len(junk)))
            content[start : start + len(junk)] = junk
        path.write_bytes(content)
        untouched = b"".join(
            content[at : at + PAGE] for at in range(0, len(content), PAGE) if at // PAGE not in hit
        )
        try:
            found = salvaged(path)
        except StoreUnavailable:
            assert 0 in hit
            return
        saved = {
            message.body.decode(errors="replace") for _, messages in found.values() for message in messages
        }
        assert {body for body in bodies if body.partition("x")[0].encode() in untouched} <= saved


@pytest.mark.parametrize("content", [b"", b"x", b"SQLite format 3\0", b"\x0d" * PAGE, b"\xff" * 3 * PAGE])
def test_a_file_of_anything_is_read_without_harm(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    try:
        assert salvaged(path) == {}
    except StoreUnavailable as error:
        assert "empty" in str(error) or "another program" in str(error)
    assert path.read_bytes() == content
