"""Searches of a part of a session: positions, roles, tools, turns, times, agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.errors import SessionMissing
from sidecar.store.search import SearchKind
from tests.postgres_server import shared_server
from tests.search_kit import TOOL_MARK, extract, index_in_small_portions, positions, rest, search
from tests.store_kit import REF, Driver, reply, user

KINDS: list[SearchKind] = ["words", "literal", "regex"]
COUNT = 60


@pytest.fixture(params=["memory", "sqlite", "postgres", "sqlite indexed", "postgres indexed"])
def filled(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Driver]:
    """A session of sixty messages: in threes a user, an assistant that calls a tool, and its answer."""
    kind, _, indexed = request.param.partition(" ")
    if indexed:
        index_in_small_portions(monkeypatch)
    url = shared_server().fresh() if kind == "postgres" else None
    with Driver(lambda: open_store(kind, tmp_path / "s.db", url=url, extract=extract)) as driver:
        for number in range(0, COUNT, 3):
            tool = "bash" if number % 2 else "read file"
            driver.append(
                REF,
                user(f"plum {number}", timestamp_ms=1000 + number, turn_id=f"turn\n{number}"),
                reply(f"plum call{TOOL_MARK}{tool}", timestamp_ms=1001 + number),
                reply(f"plum result{TOOL_MARK}{tool}", "tool", timestamp_ms=1002 + number),
            )
        rest(driver)
        yield driver


def found(store: Driver, kind: SearchKind, **members: object) -> list[int]:
    return sorted(positions(store, "plum", kind, limit=100, **members))


@pytest.mark.parametrize("kind", KINDS)
def test_only_positions_in_the_range_are_found(filled: Driver, kind: SearchKind) -> None:
    assert found(filled, kind, first=7, last=23) == list(range(7, 24))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_roles_asked_for_are_found(filled: Driver, kind: SearchKind) -> None:
    assert found(filled, kind, roles=("user",)) == list(range(1, COUNT, 3))
    assert found(filled, kind, roles=("user", "tool")) == [
        each for each in range(1, COUNT + 1) if each % 3 != 2
    ]
    assert found(filled, kind, roles=("nobody",)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_only_messages_of_the_tool_are_found(filled: Driver, kind: SearchKind) -> None:
    assert found(filled, kind, tool="bash") == [each for each in range(1, COUNT + 1) if each % 6 in (5, 0)]
    assert found(filled, kind, tool="read") == []


@pytest.mark.parametrize("kind", KINDS)
def test_only_messages_of_the_turn_are_found(filled: Driver, kind: SearchKind) -> None:
    assert found(filled, kind, turn_id="turn\n9") == [10, 11, 12]
    assert found(filled, kind, turn_id="t4") == []


@pytest.mark.parametrize("kind", KINDS)
def test_only_messages_of_the_time_are_found(filled: Driver, kind: SearchKind) -> None:
    assert found(filled, kind, since_ms=1010, until_ms=1020) == list(range(11, 22))
    assert found(filled, kind, until_ms=999) == []


@pytest.mark.parametrize("kind", KINDS)
def test_everything_asked_for_must_hold_at_once(filled: Driver, kind: SearchKind) -> None:
    narrowed = found(filled, kind, roles=("tool",), tool="bash", since_ms=1010, last=50)
    assert narrowed == [each for each in range(12, 51) if each % 6 == 0]


@pytest.mark.parametrize("kind", KINDS)
def test_another_agent_finds_nothing_in_a_session(filled: Driver, kind: SearchKind) -> None:
    filled.append(REF, "plum", agent_id="ann")
    assert len(found(filled, kind, agent_id="ann")) == COUNT + 1
    assert len(found(filled, kind)) == COUNT + 1
    with pytest.raises(SessionMissing):
        search(filled, "plum", kind, agent_id="bob")
