"""Message ids: how they are made up, and how one is read back.

A made-up id is the session's tag and a number, such as `k3f9x2ab-17`. While nothing was inserted or removed
the number is the position, so an id costs no storage.
"""

import os

from sidecar.store.records import MADE_UP, MessageRow

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_FAR = 1 << 40
"""Numbers beyond are never reached by counting, so they need no care."""


def new_tag() -> str:
    """Eight random letters and digits (40 bits) that tell one session's made-up ids from another's."""
    return "".join(_LETTERS[byte & 31] for byte in os.urandom(8))


def made_up(tag: str, number: int) -> str:
    """The id with this number."""
    return f"{tag}-{number}"


def number_in(tag: str, message_id: str) -> int | None:
    """The number of a made-up id of this tag, `None` where it is no such id."""
    if not message_id.startswith(tag) or message_id[len(tag) : len(tag) + 1] != "-":
        return None
    digits = message_id[len(tag) + 1 :]
    if not (digits.isascii() and digits.isdigit()) or digits[0] == "0" or len(digits) > 13:
        return None
    number = int(digits)
    return number if number < _FAR else None


def id_of(tag: str, name: str | None, number: int | None, position: int) -> str:
    """The id of a row; `tag` is that of the session that owns it."""
    return name if name is not None else f"{tag}-{position if number is None else number}"


def written_out(row: MessageRow, tag: str) -> MessageRow:
    """The row with its made-up id spelled out, so that it stays the same under another owner."""
    if row.name is not None:
        return row
    name = id_of(tag, None, row.number, row.position)
    return row._replace(name=name, number=None, flags=row.flags | MADE_UP)
