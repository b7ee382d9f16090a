"""The pages of a SQLite file as its write-ahead log leaves them, read without SQLite.

Nothing is locked or changed. The formats are those of https://sqlite.org/fileformat2.html.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from sidecar.store.sqlite.schema import PAGE_SIZE

_MAGIC = b"SQLite format 3\0"
_LOG_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEADER = 32
_FRAME_HEADER = 24
_SIZES = {1 << power for power in range(9, 17)}


class PageFile:
    """Pages by their number, which begins with 1; a page that is not there is `None`."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            OSError: it cannot be read.
        """
        self._file = path.open("rb")
        head = self._file.read(100)
        self.header = head if head.startswith(_MAGIC) and len(head) == 100 else None
        """The first 100 bytes, `None` where they are not what they should be."""
        self._log = _Log(path.with_name(f"{path.name}-wal"))
        self.page_size = _page_size(head) if self.header else self._log.page_size or PAGE_SIZE
        self._log.keep_only(self.page_size)
        size = self._file.seek(0, 2)
        self.count = max(-(-size // self.page_size), self._log.last_page)
        """Pages that there may be."""
        self.usable = self.page_size - (head[20] if self.header else 0)
        first = self.page(1)
        if first is not None and first.startswith(_MAGIC):  # the log may have a newer one
            self.header = first[:100]

    def number_at(self, offset: int) -> int | None:
        """A number of four bytes in the header."""
        return None if self.header is None else int.from_bytes(self.header[offset : offset + 4], "big")

    def page(self, number: int) -> bytes | None:
        """A page as the last commit left it."""
        if not 0 < number <= self.count:
            return None
        found = self._log.page(number)
        if found is None:
            try:
                self._file.seek((number - 1) * self.page_size)
                found = self._file.read(self.page_size)
            except OSError:
                return None
        return found if len(found) == self.page_size else None

    def numbers(self) -> Iterator[int]:
        """The numbers of all pages."""
        return iter(range(1, self.count + 1))

    def close(self) -> None:
        """Let go of the files."""
        self._file.close()
        self._log.close()


class _Log:
    """The newest committed version of each page in a write-ahead log."""

    def __init__(self, path: Path) -> None:
        self.page_size = 0
        self.last_page = 0
        self._places: dict[int, int] = {}
        self._file = path.open("rb") if path.is_file() else None
        if self._file is not None:
            self._read_frames(self._file.read(_LOG_HEADER))

    def keep_only(self, page_size: int) -> None:
        """Leave the log aside where its pages are of another size."""
        if self.page_size != page_size:
            self._places.clear()
            self.last_page = 0

    def page(self, number: int) -> bytes | None:
        """The page, `None` where the log has none of that number."""
        place = self._places.get(number)
        if place is None or self._file is None:
            return None
        self._file.seek(place)
        return self._file.read(self.page_size)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _read_frames(self, header: bytes) -> None:
        assert self._file is not None
        if len(header) < _LOG_HEADER:
            return
        magic, _, size = struct.unpack(">3I", header[:12])
        if magic not in _LOG_MAGIC or size not in _SIZES:
            return
        order = ">" if magic == _LOG_MAGIC[1] else "<"
        sums = _summed(order, header[:24], (0, 0))
        if struct.pack(">2I", *sums) != header[24:]:
            return
        self.page_size = size
        uncommitted: dict[int, int] = {}
        place = _LOG_HEADER
        while len(frame := self._file.read(_FRAME_HEADER + size)) == _FRAME_HEADER + size:
            sums = _summed(order, frame[_FRAME_HEADER:], _summed(order, frame[:8], sums))
            if frame[8:16] != header[16:24] or struct.pack(">2I", *sums) != frame[16:24]:
                return
            number, pages_after = struct.unpack(">2I", frame[:8])
            uncommitted[number] = place + _FRAME_HEADER
            if pages_after:
                self._places |= uncommitted
                uncommitted.clear()
                self.last_page = pages_after
            place += len(frame)


def _summed(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """The checksum that goes on from `sums`."""
    one, two = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for first, second in zip(words, words, strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size in _SIZES else PAGE_SIZE
