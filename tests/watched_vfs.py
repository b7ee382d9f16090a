"""A file system for SQLite that notes syncs of the log, and can run out of space."""

import apsw

SYNC = "sync"
WRITE = "write"


class WatchedVFS(apsw.VFS):
    """The ordinary file system, watched; open a store with its `name` while this object lives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[object] = []
        """`WRITE` and `SYNC` of the write-ahead log, with whatever else a test puts in between."""
        self.full = False
        """While true, writes fail as on a full disk."""
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "WatchedFile":
        return WatchedFile(self, name, flags)


class WatchedFile(apsw.VFSFile):
    """One open file."""

    def __init__(self, vfs: WatchedVFS, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._vfs.full:
            raise apsw.FullError("no space left")
        if self._is_log:
            self._vfs.events.append(WRITE)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        if self._is_log:
            self._vfs.events.append(SYNC)
