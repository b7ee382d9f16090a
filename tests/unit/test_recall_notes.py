"""What instructions and recalled passages take of their room, and how they are written down."""

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engines.recall.notes import VALUES, write_notes
from sidecar.messages.dialects import dialect
from sidecar.recall.instructions import Instruction
from sidecar.recall.passages import rough_tokens
from sidecar.recall.recollection import Recollection
from sidecar.recall.remarks import Remark
from sidecar.recall.retrieval import as_whole
from sidecar.recall.working_set import WorkingSet
from tests.guard_kit import cost

DAY_MS = 86_400_000
ROOM, ALONE = 240, 220
RULES = [f"Always answer question {n} in the form that we have agreed on." for n in range(12)]
CALL = b"""{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function",
"function": {"name": "read", "arguments": "{\\"path\\": \\"src/a.py\\"}"}}]}"""


def remark(position: int, day: int, text: str) -> Remark:
    return Remark(position, f"t{position}", "user", day * DAY_MS, text)


def entry(raw: bytes) -> Entry:
    return Entry(
        message_id="m", position=1, place=1, turn=1, turn_id="t1", role="assistant", timestamp_ms=0,
        heartbeat=False, raw=raw, dialect=dialect("openai"), cost=cost,
    )  # fmt: skip


def notes(before: Sequence[Entry]) -> str:
    standing = [Instruction(0, text, remark(n + 1, 19_000, text)) for n, text in enumerate(RULES)]
    values = WorkingSet()
    for each in before:
        values.add(each.reading)
    return write_notes(standing, values, (), ROOM, ALONE, rough_tokens)


def test_instructions_take_half_of_the_notes_beside_values() -> None:
    text = notes([entry(CALL)])
    assert "read: src/a.py" in text
    assert ROOM / 3 < rough_tokens(text.partition(VALUES)[0]) <= ROOM / 2 + 1


def test_instructions_take_what_values_do_not_need() -> None:
    assert ROOM / 2 + 20 < rough_tokens(notes(())) <= ALONE + 1


def test_the_day_stands_where_it_changes() -> None:
    recollection = Recollection(500, rough_tokens, ())
    recollection.add(
        map(as_whole, [remark(3, 19_001, "c"), remark(2, 19_000, "b"), remark(1, 19_000, "a")]), 500
    )
    assert recollection.text().splitlines()[1:] == [
        "(t3, 2022-01-09) user: c",
        "(t2, 2022-01-08) user: b",
        "(t1) user: a",
    ]


def test_passages_take_no_more_than_their_room() -> None:
    for room in range(60, 400, 20):
        recollection = Recollection(room, rough_tokens, ())
        recollection.add((as_whole(remark(n, 19_000 + n, "word " * n)) for n in range(1, 40)), room)
        assert rough_tokens(recollection.text()) <= room
