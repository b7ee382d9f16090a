"""Two sidecars on one PostgreSQL that write to the same hundred sessions at the same time."""

import random
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.sidecar_host import Host, exported
from tests.e2e.talk import Talk
from tests.postgres_server import shared_server

TALK = Talk("openai")
SESSIONS = 100
IN_FLIGHT = 32


class Side:
    """One of the sidecars, with what it still has to send, one turn each, in order."""

    def __init__(self, state_dir: Path, config: dict[str, object], name: str) -> None:
        self.name = name
        self.host = Host(state_dir / name, engine="default", config=config, namespace="shared")
        self.waiting: deque[tuple[str, str]] = deque()
        self._open: dict[int, tuple[str, str]] = {}

    @property
    def done(self) -> bool:
        """Whether everything is acknowledged."""
        return not self.waiting and not self._open

    def advance(self) -> None:
        """Send what there is room for, take what is answered."""
        while self.waiting and len(self._open) < IN_FLIGHT:
            session, text = self.waiting.popleft()
            id = self.host.send(
                "context/commitTurn",
                sessionId=session,
                advancementKey=text,
                messages=[TALK.user(text), TALK.assistant(f"{text}!")],
            )
            self._open[id] = (session, text)
        if self._open:
            oldest = next(iter(self._open))
            self.host.until(lambda: oldest in self.host.answers, "no answer")
        for id in [id for id in self._open if id in self.host.answers]:
            self.host.wait(id)
            del self._open[id]

    def die_and_come_back(self) -> None:
        """Be killed, and send again what was not acknowledged: nobody knows whether it is stored."""
        again = list(self._open.values())
        self.host.restart(kill=True)
        self._open.clear()
        self.waiting.extendleft(reversed(again))


def write_from_both_sides(state_dir: Path, turns: int, kills: int) -> None:
    """Both sides add so many turns to every session; beside their own, both commit the same shared ones."""
    config = {"store": {"kind": "postgres", "url": shared_server().fresh()}}
    chance = random.Random(turns)
    sides = [Side(state_dir, config, name) for name in ("left", "right")]
    try:
        for side in sides:
            for number in range(turns):
                side.waiting += [(f"s{n}", f"{side.name} {number}") for n in range(SESSIONS)]
                side.waiting += [(f"s{n}", f"shared {number}") for n in range(SESSIONS)]
        moments = set(chance.sample(range(turns * 6), kills))
        step = 0
        while not all(side.done for side in sides):
            for side in sides:
                side.advance()
            if step in moments:
                chance.choice(sides).die_and_come_back()
            step += 1
        for n in range(SESSIONS):
            left, right = ([entry["message"] for entry in exported(s.host, f"s{n}")] for s in sides)
            assert left == right
            check_session([message["content"] for message in left], turns)
    finally:
        for side in sides:
            side.host.close()


def check_session(texts: Sequence[str], turns: int) -> None:
    """Every turn is there once and whole, and those of each side in the order of that side."""
    assert [f"{text}!" for text in texts[::2]] == list(texts[1::2])
    assert sorted(texts[::2]) == sorted(
        f"{name} {number}" for name in ("left", "right", "shared") for number in range(turns)
    )
    for name in ("left", "right", "shared"):
        numbers = [int(text.split()[1]) for text in texts[::2] if text.startswith(name)]
        assert numbers == list(range(turns))


def test_order_and_once_only_hold_in_a_hundred_sessions(tmp_path: Path) -> None:
    write_from_both_sides(tmp_path, 2, kills=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_order_and_once_only_hold_for_long_while_sidecars_are_killed(tmp_path: Path) -> None:
    write_from_both_sides(tmp_path, 100, kills=40)
