"""Replaced results are remembered by content, not by position."""

from sidecar.engine.entry import Entry
from sidecar.engine.guard.slot import Writer
from sidecar.engine.guard.stubs import Stubs
from sidecar.messages.dialects import dialect as dialect_of
from tests.e2e.conversations import Speaker
from tests.guard_kit import MARKS, cost

DIALECT = dialect_of("openai").marked(MARKS)
WRITER = Writer(DIALECT, cost)


def _entry(raw: bytes, message_id: str = "m1") -> Entry:
    return Entry(
        message_id=message_id,
        position=1,
        place=1,
        turn=1,
        turn_id="t1",
        role="tool",
        timestamp_ms=0,
        heartbeat=False,
        raw=raw,
        dialect=DIALECT,
        cost=cost,
    )


def _result(text: str, call_id: str = "call_1") -> bytes:
    speaker = Speaker("openai")
    return speaker.results([((call_id, "read", {}), text)])[0]


def test_a_replaced_result_is_shown_as_its_stand_in_from_then_on() -> None:
    stubs = Stubs(WRITER)
    large = _entry(_result("word " * 500))
    assert stubs.shown(large) is large
    assert stubs.add([WRITER.stub(large)])
    shown = stubs.shown(large)
    assert shown.whole is large and shown.tokens < large.tokens
    assert not stubs.add([shown]), "nothing new"


def test_remembered_replacements_survive_a_restart() -> None:
    stubs, large = Stubs(WRITER), _entry(_result("word " * 500))
    stubs.add([WRITER.stub(large)])
    fresh = Stubs(WRITER)
    fresh.load(stubs.encoded())
    assert fresh.shown(large).raw == stubs.shown(large).raw
    fresh.load(None)
    assert fresh.shown(large) is large


def test_a_message_that_gets_another_id_once_it_is_stored_stays_replaced_in_the_same_words() -> None:
    stubs = Stubs(WRITER)
    raw = _result("word " * 500)
    stubs.add([WRITER.stub(_entry(raw, "live-1"))])
    shown = stubs.shown(_entry(raw, "stored-7"))
    assert shown.whole and shown.raw == WRITER.stub(_entry(raw, "live-1")).raw
    stubs.replace(stubs.renewed([shown]))
    stubs.forget_shown()
    assert b"stored-7" in stubs.shown(_entry(raw, "stored-7")).raw


def test_the_same_text_for_another_call_is_whole() -> None:
    stubs = Stubs(WRITER)
    stubs.add([WRITER.stub(_entry(_result("word " * 500)))])
    other = _entry(_result("word " * 500, "call_2"))
    assert stubs.shown(other) is other


def test_replacements_count_as_memory_including_their_originals() -> None:
    stubs, large = Stubs(WRITER), _entry(_result("word " * 50_000))
    assert stubs.weight == 0
    stubs.add([WRITER.stub(large)])
    remembered = stubs.weight
    assert remembered > 0
    stubs.shown(large)
    assert stubs.weight > remembered + len(large.raw)
    stubs.forget_shown()
    assert stubs.weight == remembered
