"""Recognises our own fenced texts by their code, which only the session's store can generate.

The code is a keyed hash of kind, reference and content. The key derives from a secret that never leaves the
store, and from the session with which the history began. A fence of one conversation is thus plain text in
every other one, except in its forks.
"""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports before the first answer combined.
from _blake2 import blake2b
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

from msgspec import structs

from sidecar.messages.contract import Mark, MarkKind, Reading
from sidecar.messages.fence import (
    DIGITS,
    FIRST_DIGITS,
    OPENING,
    OPENING_BYTES,
    Fenced,
    enclose,
    fences,
    only,
    strip,
    whole_mark,
)
from sidecar.messages.text import fold, same_id

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect, Role, ToolResult

_ROLES: Mapping[MarkKind, tuple[Role, ...]] = {
    "summary": ("user",),
    "activityLog": ("user",),
    "memory": ("user", "system"),
    "recall": ("user",),
    "note": ("user",),
    "stub": ("user",),
    "ack": ("assistant",),
    "noResult": (),
}
"""Roles in whose text each kind of mark is valid; `stub` and `noResult` are also valid in tool results."""
_FIRST_ROLES: Mapping[MarkKind, tuple[Role, ...]] = {**_ROLES, "activityLog": ("user", "assistant")}


class Marks:
    """Writes and recognises the fences of one family: a session and all its forks.

    `secrets` are the store's: the first writes fences, and each of them recognises fences. `root` names the
    session with which the family began.
    """

    def __init__(self, secrets: Sequence[bytes], root: str, first_edition: bool = False) -> None:
        self._secrets = secrets
        self._root = root
        self._first_edition = first_edition
        """Whether the family has messages from the first edition, whose codes had no key."""
        self._keys: list[bytes] = []

    def follow(self, root: str, first_edition: bool) -> None:
        """Switch to this family, which is known only once the session is stored."""
        if root != self._root:
            self._root, self._keys = root, []
        self._first_edition = first_edition

    def wrap(self, mark: Mark, text: str) -> str:
        """`text` in a fence that this family recognises."""
        return enclose(mark, _code(self._family_keys()[0], mark, text), text)

    def ours(self, text: str, role: Role, *, transcript: bool = False) -> frozenset[str]:
        """Our fenced parts, verbatim, in the text of a message with this role.

        In a complete host `transcript`, a text that is only a first-edition fence is ours too.
        """
        if OPENING not in text:
            return frozenset()
        parts = fences(text)
        if transcript and parts and len(parts[0].code) == FIRST_DIGITS and only(text, parts):
            known = [part for part in parts if self._wrote(part) and role in _FIRST_ROLES[part.mark.kind]]
        else:
            known = [part for part in parts if self._issued(part) and role in _ROLES[part.mark.kind]]
        return frozenset(text[part.start : part.stop] for part in known)

    def result_mark(self, result: ToolResult, *, transcript: bool = False) -> Mark | None:
        """The mark of a result that our text replaces; `None` for a tool's own result."""
        parts = fences(result.text)
        if len(parts) != 1 or not only(result.text, parts):
            return None
        part = parts[0]
        if not (self._issued(part) or (transcript and self._wrote(part))):
            return None
        if part.mark.kind == "noResult":
            return part.mark if same_id(part.mark.ref) == same_id(result.call_id) else None
        return part.mark if part.mark.kind == "stub" else None

    def _issued(self, part: Fenced) -> bool:
        if len(part.code) != DIGITS:
            return False
        keys = self._family_keys()
        if part.mark.kind == "memory":
            keys = [*keys, *self._keys_of(general_root(self._root))]
        return any(_code(key, part.mark, part.content) == part.code for key in keys)

    def _wrote(self, part: Fenced) -> bool:
        """Whether the fence is a valid first-edition fence, which anybody could have written."""
        return self._first_edition and part.code == _checksum(part.mark, part.content)

    def _family_keys(self) -> list[bytes]:
        if not self._keys:
            self._keys = self._keys_of(self._root)
        return self._keys

    def _keys_of(self, root: str) -> list[bytes]:
        name = root.encode("utf-8", "surrogatepass")
        return [blake2b(name, key=secret, digest_size=32).digest() for secret in self._secrets]


def issued(reader: Dialect, raw: bytes) -> list[str]:
    """Our fenced parts in the text of a message, for readers without the secret.

    `reader` is the dialect marked for the message's family.
    """
    return sorted(reader.read(raw).ours) if OPENING_BYTES in raw else []


def without_issued(reader: Dialect, raw: bytes, parts: Collection[str]) -> bytes | None:
    """The message without these fenced parts, otherwise unchanged; `None` if nothing else remains."""
    if not parts:
        return raw
    made = reader.change_texts(raw, lambda texts: [strip(text, parts) for text in texts])
    reading = reader.read(made)
    says = reading.text.strip() or reading.calls or reading.results or reading.media or reading.reasoning
    return made if says else None


def general_root(root: str) -> str:
    """The root used for memory that a host requests without naming a session."""
    return root[: root.rindex("\x1f") + 1] if "\x1f" in root else root


class Marking:
    """Shared by the dialects: recognises our own text in a message by the marks of a session."""

    marks: Marks | None = None
    _transcript = False

    def marked(self, marks: Marks, *, transcript: bool = False) -> Self:
        """As `Dialect.marked`."""
        made = copy(self)
        made.marks, made._transcript = marks, transcript
        return made

    def wrap(self, mark: Mark, text: str) -> str:
        """As `Dialect.wrap`."""
        if self.marks is None:
            raise ValueError("the dialect has no marks; use marked() first")
        return self.marks.wrap(mark, text)

    def _recognised(self, raw: bytes, reading: Reading) -> Reading:
        """The reading with our own text recognised."""
        if self.marks is None or OPENING_BYTES not in raw:
            return reading
        ours = self.marks.ours(reading.text, reading.role, transcript=self._transcript)
        marks = [self.marks.result_mark(r, transcript=self._transcript) for r in reading.results]
        if not ours and not any(marks):
            return reading
        return structs.replace(
            reading,
            ours=ours,
            result_marks=tuple(marks) if any(marks) else (),
            mark=_message_mark(reading, ours, marks),
        )


def _message_mark(reading: Reading, ours: frozenset[str], marks: Sequence[Mark | None]) -> Mark | None:
    """The mark of a message that consists only of our text, else `None`."""
    if reading.calls or reading.media or not all(marks):
        return None
    said = whole_mark(reading.text, ours) if reading.text.strip() else None
    if reading.text.strip() and said is None:
        return None
    return marks[0] if marks else said


def _code(key: bytes, mark: Mark, content: str) -> str:
    subject = f"{mark.kind}\n{mark.ref}\n{fold(content)}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(blake2b(subject, key=key, digest_size=16).digest(), "big")
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def _checksum(mark: Mark, content: str) -> str:
    """The checksum that the first edition used in place of the code."""
    from zlib import crc32

    subject = f"{mark.kind}\n{mark.ref}\n{fold(content)}"
    return f"{crc32(subject.encode('utf-8', 'replace')) % 10**FIRST_DIGITS:0{FIRST_DIGITS}d}"
