"""The cursor of a list of sessions: where the page before ended."""

from sidecar.store.records import SessionRecord


def encode_cursor(record: SessionRecord) -> str:
    """The cursor of the page behind this session."""
    return f"{record.updated_ms}.{record.uid}"


def decode_cursor(cursor: str) -> tuple[int, int]:
    """`updated_ms` and `uid` of the session that the page before ended with.

    Raises:
        ValueError: the cursor is not one of ours.
    """
    stamp, _, uid = cursor.partition(".")
    for number in (stamp, uid):
        if not (number.isascii() and number.isdigit()) or len(number) > 18:
            raise ValueError(f"{cursor[:60]!r} is no cursor of this list")
    return int(stamp), int(uid)
