"""Every readable message of a store file, whatever state the file is in; nothing of it is changed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from sidecar.store.errors import StoreDamaged, StoreUnavailable
from sidecar.store.lines import Owner
from sidecar.store.presenting import stored_messages
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.sqlite.reads import session_record
from sidecar.store.sqlite.schema import APPLICATION_ID, VERSION
from sidecar.store.sqlite.upkeep.cells import Cell, row_at, rows_of
from sidecar.store.sqlite.upkeep.pages import PageFile
from sidecar.store.stored import SECRET_BYTES, SessionRef, StoredMessage
from sidecar.store.upkeep import Progress

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
