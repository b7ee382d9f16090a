"""Values of a history, collected as it grows."""

from types import SimpleNamespace
from typing import cast

import pytest

from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engines import recollector
from sidecar.engines.recollector import Recollector
from sidecar.messages.dialects import dialect
from sidecar.recall.passages import rough_tokens
from sidecar.recall.working_set import WorkingSet
from tests.guard_kit import cost


def call(position: int) -> Entry:
    raw = b"""{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function",
    "function": {"name": "read", "arguments": "{\\"path\\": \\"src/file%d.py\\"}"}}]}"""
    return Entry(
        message_id=f"m{position}", position=position, place=position, turn=1, turn_id="t1", role="assistant",
        timestamp_ms=0, heartbeat=False, raw=raw % (position % 17), dialect=dialect("openai"), cost=cost,
    )  # fmt: skip


HISTORY = [call(position) for position in range(1, 101)]


def session(version: str = "1.0") -> Session:
    return cast("Session", SimpleNamespace(session_id="s", history=SimpleNamespace(version=version)))


def kept() -> Recollector:
    return Recollector(cast("EngineHost", SimpleNamespace(tokens=None)))


def anew(entries: list[Entry]) -> list[str]:
    values = WorkingSet()
    for entry in entries:
        values.add(entry.reading)
    return lines(values)


def lines(values: WorkingSet) -> list[str]:
    return values.unseen().lines(60, rough_tokens)


def test_values_are_those_of_all_messages_up_to_the_last() -> None:
    read = kept()
    for last in (10, 40, 40, 41, 90, 30, 100):
        before = HISTORY[:last]
        assert lines(read.known(session()).values(before)) == anew(before)


def test_messages_that_were_passed_over_are_not_left_out() -> None:
    read = kept()
    read.known(session()).values(HISTORY[:10])
    assert lines(read.known(session()).values(HISTORY[50:80])) == anew(HISTORY[50:80])


def test_a_rewritten_history_has_its_own_values() -> None:
    read = kept()
    read.known(session()).values(HISTORY[:60])
    assert lines(read.known(session("1.1")).values(HISTORY[60:64])) == anew(HISTORY[60:64])


def test_values_of_very_old_messages_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recollector, "SPAN", 50)
    read = kept()
    read.known(session()).values(HISTORY[:40])
    assert lines(read.known(session()).values(HISTORY[30:70])) == anew(HISTORY[30:70])
