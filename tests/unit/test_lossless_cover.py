"""A summary for a gap uses all of its messages, unless there are thousands."""

from typing import Any, cast

import pytest

from sidecar.engines.lossless.forest import Gap
from sidecar.engines.lossless.planning import WHOLE_GAP, sampled
from tests.e2e.conversations import Speaker
from tests.guard_kit import Told


@pytest.mark.parametrize(("count", "whole"), [(108, True), (WHOLE_GAP + 200, False)])
def test_hundreds_of_messages_are_all_read(count: int, whole: bool) -> None:
    speaker = Speaker("openai")
    story = Told("openai", [speaker.user(f"message {number}") for number in range(count)])

    class History:
        def __init__(self, entries: list[Any]) -> None:
            self._entries = entries

        async def read(self, first: int, last: int) -> list[Any]:
            return self._entries[first - 1 : last]

    class Session:
        def __init__(self, entries: list[Any]) -> None:
            self.history = History(entries)

    async def work(timeline: Any) -> tuple[int, bool]:
        session = Session((await timeline.tail(1 << 40)).entries)
        entries, all_of_them = await sampled(cast(Any, session), Gap(1, count))
        assert entries[0].position == 1 and entries[-1].position == count
        return len(entries), all_of_them

    assert story.run(work) == ((count, True) if whole else (48, False))
