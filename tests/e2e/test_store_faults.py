"""What a host sees while the disk is full, the directory read-only or the database locked, and afterwards."""

import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.stored import SessionRef
from tests.e2e.sidecar_host import COMMAND, Host, Refused, history
from tests.e2e.talk import Talk
from tests.store_kit import Driver

TALK = Talk("openai")
LARGE = TALK.user("x" * 200_000)
_DROP_RIGHTS = """
import ctypes, os, sys
if os.geteuid() == 0:  # take away what lets root write anywhere
    for capability in (1, 2, 3):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class LimitedFiles:
    """A sidecar whose files may not grow: a disk that is full, without a disk."""

    def __init__(self, host: Host) -> None:
        self._pid = host.process.pid
        self._before = resource.prlimit(self._pid, resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Let no file grow any more."""
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (8192, self._before[1]))

    def free(self) -> None:
        """Let files grow again."""
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, self._before)


class Ballast:
    """A small file system that is filled by a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ballast"

    def fill(self) -> None:
        """Take all room that is left."""
        with self._file.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def free(self) -> None:
        """Give the room back."""
        self._file.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[Host], LimitedFiles | Ballast]]:
    """A file system of 4 MiB where this user may mount one, otherwise a limit on the size of files."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield lambda host: Ballast(folder) if mounted else LimitedFiles(host)
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def fill_up(host: Host, session: str) -> list[str]:
    """Ingest until the store refuses; what was acknowledged."""
    kept: list[str] = []
    for n in range(100):
        text = f"{n} " + "x" * 50_000
        try:
            host.call("context/ingest", sessionId=session, message=TALK.user(text))
        except Refused as refused:
            assert refused.code == 1006
            assert refused.data["retryable"]
            assert refused.data["hint"]
            return kept
        kept.append(text)
    raise AssertionError("the disk was never full")


def texts(host: Host, session: str) -> list[str]:
    return [message["content"] for message in history(host, session)]


def serve_through_a_full_disk(host: Host, disk: LimitedFiles | Ballast) -> None:
    host.call("context/ingest", sessionId="s", message=TALK.user("before"))
    disk.fill()
    kept = ["before", *fill_up(host, "s")]
    assert texts(host, "s") == kept
    assert host.refusal("context/ingest", sessionId="s", message=LARGE).code == 1006
    disk.free()
    host.call("context/ingest", sessionId="s", message=TALK.user("after"))
    assert texts(host, "s") == [*kept, "after"]
    host.restart(kill=True)
    assert texts(host, "s") == [*kept, "after"]


def test_a_full_disk_is_1006_until_there_is_room_and_reads_go_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, Host(tmp_path / "disk" / "state", engine="full") as host:
        serve_through_a_full_disk(host, disk(host))


def test_files_that_may_not_grow_are_1006_until_they_may(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        serve_through_a_full_disk(host, LimitedFiles(host))


WITHOUT_RIGHTS = (sys.executable, "-c", _DROP_RIGHTS, *COMMAND)
"""A sidecar that is refused what other users would be refused, also where root runs the tests."""


def test_a_read_only_directory_is_1006_and_left_as_it_is(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o500)
    try:
        with Host(state, initialized=False, command=WITHOUT_RIGHTS, engine="full") as host:
            refused = host.refusal("initialize", capabilities={})
            assert refused.code == 1006
            assert "state directory" in refused.data["hint"]
            assert str(tmp_path) not in str(refused)
            assert list(state.iterdir()) == []
            state.chmod(0o700)
            host.initialize()
            host.call("context/ingest", sessionId="s", message=TALK.user("now"))
    finally:
        state.chmod(0o700)


def test_a_store_that_may_not_be_written_is_1006_and_left_as_it_is(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full") as host:
        host.call("context/ingest", sessionId="s", message=TALK.user("a"))
        host.stop()
    path = tmp_path / "state" / "context.db"
    before = path.read_bytes()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with Host(path.parent, initialized=False, command=WITHOUT_RIGHTS, engine="full") as host:
            assert host.refusal("initialize", capabilities={}).code == 1006
        assert path.read_bytes() == before
    finally:
        path.parent.chmod(0o700)


def test_requests_wait_for_a_foreign_lock_and_are_1006_when_it_stays(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        host.call("context/ingest", sessionId="s", message=TALK.user("a"))
        other = apsw.Connection(str(tmp_path / "context.db"))
        other.execute("BEGIN IMMEDIATE")
        waiting = host.send("context/ingest", sessionId="s", message=TALK.user("b"))
        assert sessions(host) == {"s"}
        other.execute("COMMIT")
        assert host.wait(waiting)["ingested"]
        other.execute("BEGIN IMMEDIATE")
        refused = host.refusal("context/ingest", sessionId="s", message=TALK.user("c"))
        assert refused.code == 1006
        assert refused.data["retryable"]
        assert texts(host, "s") == ["a", "b"]
        other.execute("COMMIT")
        other.close()
        host.call("context/ingest", sessionId="s", message=TALK.user("d"))
        assert texts(host, "s") == ["a", "b", "d"]


def sessions(host: Host) -> set[str]:
    return {entry["sessionId"] for entry in host.call("session/list")["sessions"]}


def test_a_torn_log_costs_nothing_that_was_acknowledged_before_the_tear(tmp_path: Path) -> None:
    chance = random.Random(11)
    ends: list[int] = []
    said: list[str] = []
    log = tmp_path / "state" / "context.db-wal"
    with Host(tmp_path / "state", engine="full") as host:
        for n in range(60):
            said.append(f"{n} " + "y" * chance.choice([0, 300, 9000]))
            host.call("context/ingest", sessionId="s", message=TALK.user(said[-1]))
            ends.append(log.stat().st_size)
        host.kill()
    size = log.stat().st_size
    tears = [0, 1, 31, 32, 33, size - 1, *(chance.randrange(size) for _ in range(24))]
    for number, tear in enumerate(tears):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "state", copy)
        (copy / "context.db-shm").unlink(missing_ok=True)
        with (copy / log.name).open("r+b") as torn:
            if number % 2:
                torn.truncate(tear)
            else:
                torn.seek(tear)
                torn.write(chance.randbytes(min(chance.choice([1, 24, 5000]), size - tear)))
        with Driver(lambda copy=copy: SQLiteStore(copy / "context.db")) as store:
            ref = SessionRef("default", "s")
            left = [message.body.decode() for message in store.messages(ref)]
            whole = sum(end <= tear for end in ends)
            assert len(left) >= whole, (number, tear)
            assert all(f'"{text}"' in body for text, body in zip(said, left, strict=False))
            store.append(ref, "goes on")
        shutil.rmtree(copy)
