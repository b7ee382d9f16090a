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
from typing import Any, Literal

import psycopg

from tests.missing_programs import leave_out

LIMIT_S = 60.0


class PostgresServer:
    """One server; `durable` makes it sync to disk, which only tests of crashes need."""

    def __init__(self, *, durable: bool = False, standby_of: "PostgresServer | None" = None) -> None:
        """A standby begins with a copy of its primary, and follows it."""
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
        if standby_of is None:
            self._call(
                "initdb", "-D", self._data, "-U", "tests", "-E", "UTF8", "--no-locale", "-A", "trust", "-N"
            )
        else:
            primary = standby_of.url.replace("dbname=postgres", f"application_name={self.name}")
            self._call("pg_basebackup", "-D", self._data, "-d", primary, "-R", "-X", "stream", "-c", "fast")
        self._options = ["-c", f"fsync={'on' if durable else 'off'}"]
        self.start()

    @property
    def url(self) -> str:
        """The connection to its database."""
        return f"host={self._socket} user=tests dbname=postgres"

    @property
    def name(self) -> str:
        """What a primary knows it by as its standby."""
        return self._folder.name.replace("-", "_")

    def promote(self) -> None:
        """Make a standby the primary; returns once it takes writes."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def configure(self, **settings: str | None) -> None:
        """Change settings of the running server; `None` takes one back."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for name, value in settings.items():
                change = f"RESET {name}" if value is None else f"SET {name} = '{value}'"
                connection.execute(f"ALTER SYSTEM {change}".encode())
            connection.execute("SELECT pg_reload_conf()")

    def value(self, statement: str) -> Any:
        """The first column of a statement's first row."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(statement.encode()).fetchone()
            return None if row is None else row[0]

    def wait_for(self, condition: str) -> None:
        """Return once a statement's first column is true."""
        deadline = time.monotonic() + LIMIT_S
        while not self.value(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.02)

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

    def pause(self) -> None:
        """Let none of its processes go on, while the machine still takes what is sent to it."""
        for pid in (self.pid, *_children(self.pid)):
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        for pid in (self.pid, *_children(self.pid)):
            _signal(pid, signal.SIGCONT)

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


class Pooler:
    """PgBouncer in front of a server, on a Unix socket of its own."""

    def __init__(
        self,
        server: PostgresServer,
        mode: Literal["transaction", "session"] = "transaction",
        *,
        size: int = 20,
        settings: str = "",
    ) -> None:
        """`size` is the number of connections to the server at most; `settings` are further lines."""
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") or leave_out("pgbouncer")
        self._folder = Path(tempfile.mkdtemp(prefix="sidecar-pooler-"))
        user = _owner()
        config = self._folder / "pgbouncer.ini"
        config.write_text(
            f"""
[databases]
postgres = host={server.socket_path.rpartition("/")[0]} user=tests dbname=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {self._folder}
listen_port = 6432
auth_type = any
admin_users = tests
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 2000
{settings}
""",
            encoding="utf-8",
        )
        if user is not None:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            os.chown(config, user.pw_uid, user.pw_gid)
        self._folder.chmod(0o755)
        identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, "-q", config], stdout=log, stderr=log, cwd=self._folder, **identity
            )
        deadline = time.monotonic() + LIMIT_S
        while not (self._folder / ".s.PGSQL.6432").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self._folder / "log").read_text())
            time.sleep(0.02)

    @property
    def url(self) -> str:
        """The connection to the server's database by way of the pooler."""
        return f"host={self._folder} port=6432 user=tests dbname=postgres"

    def remove(self) -> None:
        """End it, and remove its directory."""
        self._process.kill()
        self._process.wait(LIMIT_S)
        shutil.rmtree(self._folder)


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
_poolers: dict[str, Pooler] = {}


def shared_pooler(mode: Literal["transaction", "session"]) -> Pooler:
    """A pooler in front of the server of this test run."""
    if mode not in _poolers:
        server = shared_server()
        pooler = _poolers[mode] = Pooler(server, mode)
        atexit.register(pooler.remove)
    return _poolers[mode]


def shared_server() -> PostgresServer:
    """The server of this test run, started when first asked for, and ended with the run."""
    if not _shared:
        server = PostgresServer()
        atexit.register(server.remove)
        _shared.append(server)
    return _shared[0]
