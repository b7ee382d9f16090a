"""Engines take over from each other in the middle of transcripts of every format."""

from pathlib import Path

import pytest

from tests.e2e.engine_switching import PAIRS, faults, lengthened, messages_of
from tests.e2e.inner_host import InnerHost
from tests.e2e.transcript_files import FILES

TIMES = 3


@pytest.mark.parametrize("name", FILES)
def test_any_engine_goes_on_with_a_transcript_where_another_one_left(name: str, tmp_path: Path) -> None:
    file = tmp_path / "transcript"
    file.write_text(FILES[name], encoding="utf-8")
    message_format, messages = messages_of(file)
    messages = lengthened(messages, TIMES)
    host = InnerHost(tmp_path / "state", message_format=message_format)
    wrong: list[str] = []
    for number, (one, other) in enumerate(PAIRS):
        split = 1 + number % (len(messages) - 1)  # also between a call and its result
        wrong += faults(host, f"{one} {other}", messages, one, other, split)
    host.close()
    assert not wrong
