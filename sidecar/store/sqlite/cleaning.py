"""A way for checkpoints to write pages without what was moved or erased in them.

SQLite overwrites what it erases, but where it moves rows between pages it leaves their old bytes in the
unused middle of a page. Written through this file system, such a middle is empty.
"""

import apsw

_HEADERS = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
"""Bytes of the header of each kind of B-tree page, by its first byte."""

MAX_PAGES = (1 << 25) - 1
"""Up to this size (256 GiB) the first byte of no other kind of page can be one of those."""


class CleaningVFS(apsw.VFS):
    """The file system `base` with clean pages in the database file."""

    def __init__(self, base: str) -> None:
        self.name = f"clean-{base}-{id(self):x}"
        self._base = base
        super().__init__(self.name, base)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file of the database."""
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _CleaningFile(self._base, name, flags)
        return apsw.VFSFile(self._base, name, flags)


class _CleaningFile(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:
        """Write a page."""
        page = without_remains(data, 100 if offset == 0 else 0)
        super().xWrite(page, offset)  # pyright: ignore[reportUnknownMemberType]


def without_remains(page: bytes, start: int) -> bytes:
    """The page with zeros in its unused middle; `start` is where its own header begins."""
    header = _HEADERS.get(page[start]) if len(page) > start + 12 else None
    if header is None:
        return page
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + header + 2 * cells
    last = int.from_bytes(page[start + 5 : start + 7], "big") or 65536
    if not first < last <= len(page) or not page[first:last].strip(b"\0"):
        return page
    return page[:first] + bytes(last - first) + page[last:]
