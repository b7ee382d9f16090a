from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.times import format_rfc3339, parse_rfc3339

FIRST = -62_135_596_800_000
LAST = 253_402_300_799_999


@given(st.integers(FIRST, LAST))
def test_an_instant_survives_being_written_and_read(ms: int) -> None:
    assert parse_rfc3339(format_rfc3339(ms)) == ms


@given(st.integers(FIRST, LAST), st.integers(FIRST, LAST))
def test_written_instants_sort_like_the_instants(first: int, second: int) -> None:
    assert (format_rfc3339(first) < format_rfc3339(second)) == (first < second)


@given(st.datetimes(timezones=st.just(UTC)))
def test_whole_seconds_agree_with_the_calendar(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert parse_rfc3339(whole.isoformat().replace("+00:00", "Z")) == int(whole.timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2024-01-15T10:30:00.1239Z", 1705314600123),
        ("2024-01-15T10:30:00.1Z", 1705314600100),
        ("2024-01-15T10:30:00+01:00", 1705311000000),
        ("2024-01-15T10:30:00-00:00", 1705314600000),
        ("2024-01-15t10:30:00z", 1705314600000),
        ("2024-02-29T00:00:00Z", 1709164800000),
        ("2016-12-31T23:59:60Z", 1483228800000),
        ("2017-01-01T00:59:60.5+01:00", 1483228800000),
    ],
)
def test_rfc_3339_is_read_to_the_millisecond(text: str, ms: int) -> None:
    assert parse_rfc3339(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-15",
        "2024-01-15T10:30:00",
        "2024-01-15T10:30Z",
        "2024-01-15 10:30:00Z",
        "2024-01-15T10:30:00,5Z",
        "2024-01-15T10:30:00.Z",
        "2024-01-15T10:30:00+0100",
        "2024-01-15T10:30:00Z\n",
        " 2024-01-15T10:30:00Z",
        "2023-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-01-15T24:00:00Z",
        "2024-01-15T10:60:00Z",
        "2024-01-15T10:30:61Z",
        "2024-01-15T10:30:60Z",
        "2024-01-15T10:30:00+24:00",
        "2024-01-15T10:30:00+01:60",
        "٢٠٢٤-01-15T10:30:00Z",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rfc3339(text)


@pytest.mark.parametrize("ms", [FIRST - 1, LAST + 1, 10**30])
def test_instants_outside_of_four_digit_years_are_refused(ms: int) -> None:
    with pytest.raises(ValueError):
        format_rfc3339(ms)
