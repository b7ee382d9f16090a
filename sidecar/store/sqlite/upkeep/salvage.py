"""What can be read of a damaged store file, without SQLite and without trust in what its pages say.

Nothing is locked or changed. The formats are those of https://sqlite.org/fileformat2.html.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from sidecar.store.errors import StoreDamaged, StoreUnavailable
from sidecar.store.lines import Owner
from sidecar.store.reads import stored_messages
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.sqlite.reads import session_record
from sidecar.store.sqlite.schema import APPLICATION_ID, PAGE_SIZE, VERSION
from sidecar.store.stored import SECRET_BYTES, SessionRef, StoredMessage
from sidecar.store.upkeep import Progress

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


Value = int | float | str | bytes | None

_LEAF = 0x0D
_HEADER = 8
_CELL_POINTER = 2
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of integers, by their serial type."""


class Cell(NamedTuple):
    """A row of a table."""

    row_id: int
    values: list[Value]


def rows_of(file: PageFile, number: int) -> Iterator[Cell | None]:
    """The rows of a page, if it is one of a table; `None` for one that cannot be read."""
    page = file.page(number)
    start = 100 if number == 1 else 0
    if page is None or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    pointers = start + _HEADER
    if pointers + count * _CELL_POINTER > file.usable:
        return
    for index in range(count):
        yield row_at(file, page, int.from_bytes(page[pointers + 2 * index : pointers + 2 * index + 2], "big"))


def row_at(file: PageFile, page: bytes, offset: int) -> Cell | None:
    """The row whose cell begins there, `None` where there is none that can be read."""
    try:
        size, offset = _varint(page, offset)
        row_id, offset = _varint(page, offset)
        payload = _payload(file, page, offset, size)
        return None if payload is None else Cell(_signed(row_id), _values(payload))
    except (IndexError, ValueError, struct.error):
        return None


def _payload(file: PageFile, page: bytes, offset: int, size: int) -> bytes | None:
    """The bytes of a row, with those on the pages that it overflows to."""
    usable = file.usable
    most = usable - 35
    if size <= most:
        found = page[offset : offset + size]
        return found if len(found) == size else None
    if size > file.count * usable:
        return None
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts = [page[offset : offset + local]]
    left = size - local
    following = int.from_bytes(page[offset + local : offset + local + 4], "big")
    while left > 0:
        overflow = file.page(following)
        if overflow is None:
            return None
        parts.append(overflow[4 : 4 + min(left, usable - 4)])
        left -= len(parts[-1])
        following = int.from_bytes(overflow[:4], "big")
    return b"".join(parts)


def _values(payload: bytes) -> list[Value]:
    end, offset = _varint(payload, 0)
    if not offset <= end <= len(payload):
        raise ValueError("the header of the row is too long")
    kinds: list[int] = []
    while offset < end:
        kind, offset = _varint(payload, offset)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, offset = _value(payload, offset, kind)
        values.append(value)
    return values


def _value(payload: bytes, offset: int, kind: int) -> tuple[Value, int]:
    if kind >= 12:
        end = offset + (kind - 12) // 2
        raw = payload[offset:end]
        if end > len(payload):
            raise ValueError("the row is too short")
        return (raw.decode("utf-8", "surrogatepass") if kind % 2 else raw), end
    if kind in (8, 9):
        return kind - 8, offset
    if kind == 7:
        return struct.unpack(">d", payload[offset : offset + 8])[0], offset + 8
    if kind == 0:
        return None, offset
    end = offset + _WIDTHS[kind]
    if end > len(payload):
        raise ValueError("the row is too short")
    return int.from_bytes(payload[offset:end], "big", signed=True), end


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[offset + count]
        if count == 8:
            return value << 8 | byte, offset + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + count + 1
    raise AssertionError


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


_VERSION_AT = 60
_APPLICATION_AT = 68
_TEXT = (str,)
_NUMBER = (int,)
_TEXT_OR_NOT = (str, type(None))
_NUMBER_OR_NOT = (int, type(None))
_NOTHING = (type(None),)
_MESSAGE = (
    _NOTHING, _NUMBER, _NUMBER, _NUMBER, _TEXT, _NUMBER, _NUMBER,
    _TEXT_OR_NOT, _NUMBER_OR_NOT, _TEXT_OR_NOT, _TEXT_OR_NOT, (bytes,),
)  # fmt: skip
"""What the columns of a message hold; its `row_id` is the row's own number."""
_SESSION = (
    _NOTHING, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT_OR_NOT, _TEXT_OR_NOT,
    *(_NUMBER,) * 7, _TEXT_OR_NOT, _NUMBER_OR_NOT, _NUMBER,
)  # fmt: skip
"""What the columns of a session held before its family was noted; rows with messages are longer since."""
_SECRET = (_NOTHING, (bytes,))
_FAMILY = (_TEXT_OR_NOT, _NUMBER)
LOST_NAMESPACE = "recovered"
"""The namespace of sessions whose own row is lost."""


class SavedSession(NamedTuple):
    """What is left of a session."""

    owner: Owner
    message_count: int | None
    """Messages that it had; `None` where its own row is lost, so that nobody knows."""
    found: int
    """Messages of it that are left."""


class Salvage:
    """The sessions and messages that a file still has."""

    def __init__(self, path: Path, progress: Progress) -> None:
        """Look through every page of a file.

        Raises:
            StoreUnavailable: it is a newer store, or another program's.
            StoreDamaged: it is not there, or empty.
        """
        try:
            self._file = PageFile(path)
        except FileNotFoundError as error:
            raise StoreUnavailable("there is no store yet", "Name the damaged file.") from error
        except OSError as error:
            raise StoreUnavailable(
                "the file cannot be read", "Check its name and its permissions."
            ) from error
        self._records: dict[int, SessionRecord] = {}
        self._places: dict[int, dict[int, tuple[int, int]]] = {}
        """By session and position: the page and the cell of a message."""
        self.secrets: list[bytes] = []
        """Those by which texts are known that were made for the sessions, as far as they are left."""
        self.unreadable_rows = 0
        """Rows of any table that are there, and cannot be read."""
        try:
            self._check()
            self._look_through(progress)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @property
    def session_count(self) -> int:
        """How many sessions there are."""
        return len(self._records.keys() | self._places.keys())

    @property
    def families(self) -> dict[SessionRef, tuple[str | None, bool]]:
        """For each session whose row is left: `family` and `first_edition`, as in its record."""
        return {record.ref: (record.family, record.first_edition) for record in self._records.values()}

    def sessions(self) -> Iterator[tuple[SavedSession, Iterator[StoredMessage]]]:
        """Every session with its messages in order, those that it shares with others included."""
        for uid in sorted(self._records.keys() | self._places.keys()):
            record = self._records.get(uid)
            if record is None:
                record = self._lost(uid)
                count = None
            else:
                count = record.message_count
            places = self._seen_by(record)
            owner = Owner(record.ref, record.message_format or None, record.agent_id, record.session_key)
            yield SavedSession(owner, count, len(places)), self._messages(places)

    def _check(self) -> None:
        version = self._file.number_at(_VERSION_AT)
        if self._file.count == 0:
            raise StoreDamaged("the file is empty", "There is nothing to recover.")
        if version is None:
            return
        if self._file.number_at(_APPLICATION_AT) != APPLICATION_ID:
            raise StoreUnavailable(
                "the file is a SQLite database of another program",
                "Name the file of a context-sidecar store.",
            )
        if version > VERSION:
            raise StoreUnavailable(
                f"the store has schema version {version}, this context-sidecar knows up to {VERSION}",
                "Update context-sidecar. The file was not changed.",
            )

    def _look_through(self, progress: Progress) -> None:
        count = self._file.count
        for number in self._file.numbers():
            if number % 256 == 0:
                progress("reading pages", number, count)
            for index, cell in enumerate(rows_of(self._file, number)):
                if cell is None:
                    self.unreadable_rows += 1
                elif _is(cell, _MESSAGE):
                    session, position = cast("list[int]", cell.values[1:3])
                    self._places.setdefault(session, {}).setdefault(position, (number, index))
                elif _is(cell, _SECRET) and len(secret := cast("bytes", cell.values[1])) == SECRET_BYTES:
                    self.secrets.append(secret)
                elif _is(cell, (*_SESSION, *_FAMILY)) or _is(cell, _SESSION):
                    family = () if len(cell.values) > len(_SESSION) else (None, 1)
                    row: tuple[Any, ...] = (cell.row_id, *cell.values[1:], *family)
                    self._records.setdefault(cell.row_id, session_record(row))
        progress("reading pages", count, count)

    def _lost(self, uid: int) -> SessionRecord:
        last = max(self._places[uid])
        ref = SessionRef(LOST_NAMESPACE, f"session-{uid}")
        return SessionRecord(uid, ref, "", f"recovered{uid}", None, None, 0, 0, 0, message_count=last)

    def _seen_by(self, record: SessionRecord) -> list[tuple[SessionRecord, int, int]]:
        """The messages of a session: owner, page and cell, in order."""
        found: dict[int, tuple[SessionRecord, int, int]] = {}
        last = record.message_count
        owner: SessionRecord | None = record
        seen: set[int] = set()
        while owner is not None and owner.uid not in seen:
            seen.add(owner.uid)
            for position, place in self._places.get(owner.uid, {}).items():
                if 0 < position <= last:
                    found.setdefault(position, (owner, *place))
            last = min(last, owner.shared)
            parent = owner.parent
            owner = None if parent is None else self._records.get(parent)
            if owner is None and parent in self._places:
                owner = self._lost(parent)
        return [found[position] for position in sorted(found)]

    def _messages(self, places: list[tuple[SessionRecord, int, int]]) -> Iterator[StoredMessage]:
        for owner, number, index in places:
            page = self._file.page(number)
            assert page is not None
            start = (108 if number == 1 else 8) + 2 * index
            cell = row_at(self._file, page, int.from_bytes(page[start : start + 2], "big"))
            if cell is not None:
                yield stored_messages(owner, [MessageRow(*cast(Any, (cell.row_id, *cell.values[1:])))])[0]


def _is(cell: Cell, shape: tuple[tuple[type, ...], ...]) -> bool:
    values = cell.values
    return len(values) == len(shape) and all(
        isinstance(value, kinds) for value, kinds in zip(values, shape, strict=True)
    )
