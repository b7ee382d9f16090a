"""Parts of a store that stand still until a test lets them go."""

import threading

import apsw

LIMIT_S = 30


class Stall:
    """Whoever waits here goes on once the test says so."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def wait(self) -> None:
        self.begun.set()
        assert self.let_go.wait(LIMIT_S)


class StalledDisk(apsw.VFS):
    """A file system whose disk, once it is armed, does not sync the database file; it syncs the log."""

    def __init__(self, stall: Stall) -> None:
        self.stall = stall
        self.armed = False
        self.name = f"stalled-{id(self):x}"
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        is_database = flags[0] & apsw.SQLITE_OPEN_MAIN_DB
        return _StalledFile(self, name, flags) if is_database else apsw.VFSFile("", name, flags)


class _StalledFile(apsw.VFSFile):
    def __init__(self, disk: StalledDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        if self._disk.armed:
            self._disk.stall.wait()
        super().xSync(flags)
