"""Strict RFC 3339 instants as milliseconds since the Unix epoch."""

from datetime import UTC, datetime, timedelta
from re import ASCII, compile

_PATTERN = compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", ASCII
)
_EPOCH_DAY = datetime(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
_EARLIEST = (1 - _EPOCH_DAY) * _DAY_MS
_LATEST = (datetime.max.toordinal() - _EPOCH_DAY + 1) * _DAY_MS - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_rfc3339(text: str) -> int:
    """Milliseconds from 1970-01-01T00:00:00Z to an RFC 3339 instant; finer digits are truncated.

    A zone is required. A leap second counts as the first second of the next minute.

    Raises:
        ValueError: `text` is not an RFC 3339 instant; the message says why.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 time such as 2024-01-15T10:30:00Z")
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    try:
        days = datetime(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        raise ValueError(f"{text!r} names a day that does not exist") from None
    offset = 0
    if sign is not None:
        offset = int(zone_hours) * 60 + int(zone_minutes)
        if int(zone_hours) > 23 or int(zone_minutes) > 59:
            raise ValueError(f"{text!r} has a zone that does not exist")
        if sign == "-":
            offset = -offset
    clock = int(hour) * 60 + int(minute)
    if int(hour) > 23 or int(minute) > 59 or int(second) > 60:
        raise ValueError(f"{text!r} has a time of day that does not exist")
    if second == "60" and (clock - offset) % 1440 != 1439:
        raise ValueError(f"{text!r} has a leap second that is not at the end of a UTC day")
    millis = int(fraction[:3].ljust(3, "0")) if fraction else 0
    if second == "60":
        millis = 0
    return days * _DAY_MS + (clock - offset) * 60_000 + int(second) * 1000 + millis


def format_rfc3339(ms: int) -> str:
    """The instant as RFC 3339 in UTC with milliseconds, such as `2024-01-15T10:30:00.000Z`.

    Raises:
        ValueError: the instant is before year 1 or after year 9999.
    """
    if not _EARLIEST <= ms <= _LATEST:
        raise ValueError(f"{ms} ms is outside the range of RFC 3339")
    instant = _EPOCH + timedelta(milliseconds=ms)
    return f"{instant.isoformat(timespec='milliseconds')[:-6]}Z"
