"""A PostgreSQL server of the tests' own, in a temporary directory on a Unix socket."""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.missing_programs import leave_out

LIMIT_S = 60.0


class PostgresServer:
    """One server; `durable` makes it sync to disk, which only tests of crashes need."""

    def __init__(self, *, durable: bool = False) -> None:
        self._programs = _programs()
        self._folder = Path(tempfile.mkdtemp(prefix="sidecar-pg-"))
        self._user = _owner()
        self._data = self._folder / "data"
        self._socket = self._folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None
        for folder in (self._data, self._socket):
            folder.mkdir(mode=0o700)
        self._folder.chmod(0o711)
        self._socket.chmod(0o755)
        if self._user is not None:
            for folder in (self._data, self._socket):
                os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self._call(
            "initdb", "-D", self._data, "-U", "tests", "-E", "UTF8", "--no-locale", "-A", "trust", "-N"
        )
        self._options = ["-c", f"fsync={'on' if durable else 'off'}"]
        self.start()

    @property
    def url(self) -> str:
        """The connection to its database."""
        return f"host={self._socket} user=tests dbname=postgres"

    @property
    def socket_path(self) -> str:
        """The Unix socket that it listens on."""
        return str(self._socket / ".s.PGSQL.5432")

    @property
    def pid(self) -> int:
        """The id of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    *("-D", self._data, "-k", self._socket, "-c", "listen_addresses="),
                    *("-c", "max_connections=100", "-c", "shared_buffers=32MB", *self._options),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                **self._as_user(),
            )
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self._folder / "log").read_text()) from None
                time.sleep(0.02)

    def fresh(self) -> str:
        """The connection to its database, with the store removed from it."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute("DROP SCHEMA IF EXISTS context_sidecar CASCADE")
        return self.url

    def cpu_us(self) -> float:
        """Processor time that its processes have used so far, in microseconds."""
        pids = (self.pid, *_children(self.pid))
        live = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1000
        ended = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(ended[13]) + int(ended[14])
        return live + ticks * 1e6 / os.sysconf("SC_CLK_TCK")

    def database_size(self) -> int:
        """Bytes of its database on the disk."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row is not None
            return int(row[0])

    def kill(self) -> None:
        """End all its processes at once, as a crash of the machine would."""
        process, self._process = self._process, None
        if process is not None:
            children = _children(process.pid)
            for pid in (process.pid, *children):
                _signal(pid, signal.SIGKILL)
            process.wait(LIMIT_S)
            _wait_for_end(children)
            (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it in order."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT_S)

    def remove(self) -> None:
        """End it, and remove its directory."""
        self.stop()
        shutil.rmtree(self._folder)

    def _call(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            check=True,
            capture_output=True,
            timeout=LIMIT_S,
            **self._as_user(),
        )

    def _as_user(self) -> dict[str, object]:
        common: dict[str, object] = {"cwd": self._folder}
        if self._user is None:
            return common
        return {**common, "user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def _owner() -> pwd.struct_passwd | None:
    """Who runs the server: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _programs() -> Path:
    """The directory of the server's programs; Debian keeps them out of the PATH."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found += [path.parent for path in sorted(versions, key=lambda path: int(path.parts[-3]), reverse=True)]
    usable = next((folder for folder in found if (folder / "postgres").exists()), None)
    return usable or leave_out("postgresql")


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while any(Path(f"/proc/{pid}/stat").exists() and not _is_zombie(pid) for pid in pids):
        assert time.monotonic() < deadline, "the server's processes did not end"
        time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


_shared: list[PostgresServer] = []


def shared_server() -> PostgresServer:
    """The server of this test run, started when first asked for, and ended with the run."""
    if not _shared:
        server = PostgresServer()
        atexit.register(server.remove)
        _shared.append(server)
    return _shared[0]
