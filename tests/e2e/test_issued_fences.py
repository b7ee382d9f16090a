"""What the sidecar wrote itself is known when a host hands it back: after restarts, in forks, in any way."""

import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import DIALECTS, Message, Talk

ENGINES = ("default", "full", "lossless", "recall", "sliding-window", "terse")
QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where nothing waits for a disk: what is durable is for other tests."""
PROMPT = "How much is the otter invoice of Bergen?"
_names = count(1)


class Turn(NamedTuple):
    """A turn of a story: how long its parts are, and whether its call was interrupted."""

    asked: int
    given: int
    interrupted: bool


class Story(NamedTuple):
    """What is said, what the sidecar makes of it, and what becomes of the session before that comes back."""

    turns: list[Turn]
    engine: str
    budget: int
    restarted: bool
    forks: int
    deleted: bool
    waiting: bool
    """Whether the newest result has no answer yet: then it may be replaced by a stub."""


Decorate = Callable[[str], str]


def as_it_was(text: str) -> str:
    return text


def with_a_time(text: str) -> str:
    return f"[Sat 2026-11-21 03:25 UTC] {text}"


def with_a_runtime(text: str) -> str:
    return f"{text}\n\nRuntime: agent=main | host=box"


def with_folded_space(text: str) -> str:
    return " ".join(text.split())


DECORATIONS: list[Decorate] = [as_it_was, with_a_time, with_a_runtime, with_folded_space]


def by_ingest(host: Host, session: str, made: list[Message], new: list[Message]) -> None:
    for message in made:
        answer = host.call("context/ingest", sessionId=session, message=message)
        assert (answer["ingested"], answer.get("reason")) == (False, "synthetic"), message
    for message in new:
        assert host.call("context/ingest", sessionId=session, message=message)["ingested"]


def by_batch(host: Host, session: str, made: list[Message], new: list[Message]) -> None:
    answer = host.call("context/ingestBatch", sessionId=session, messages=[*made, *new])
    assert answer["ingestedCount"] == len(new)


def by_commit(host: Host, session: str, made: list[Message], new: list[Message]) -> None:
    host.call("context/commitTurn", sessionId=session, advancementKey="k", messages=[*made, *new])


def by_after_turn(host: Host, session: str, made: list[Message], new: list[Message]) -> None:
    host.call("context/afterTurn", sessionId=session, messages=[*made, *new])


def by_bootstrap(host: Host, session: str, made: list[Message], new: list[Message]) -> None:
    assert not host.call("context/bootstrap", sessionId=session, messages=made)["bootstrapped"]
    host.call("context/afterTurn", sessionId=session, messages=new)


WAYS = [by_ingest, by_batch, by_commit, by_after_turn, by_bootstrap]


def words(number: int) -> str:
    return " ".join(f"word{n % 13}" for n in range(number))


def told(talk: Talk, turns: list[Turn], *, waiting: bool) -> list[Message]:
    """The messages of a story."""
    said = [talk.user("The otter invoice of Bergen is 4711 crowns."), talk.assistant("Noted.")]
    for number, turn in enumerate(turns):
        id = f"call_{number:04d}"
        said += [talk.user(f"Question {number}: {words(turn.asked)}")]
        said += [talk.call(id, "look", {"at": number})]
        if not turn.interrupted:
            said += [talk.result(id, "look", f"seen {number}: {words(turn.given)}")]
            said += [talk.assistant(f"<terse>Looked at {number}.</terse> Answer {number}.")]
    said += [talk.user(PROMPT)]
    if waiting:
        said += [talk.call("call_last", "look", {}), talk.result("call_last", "look", words(2000))]
    return said


def decorated(message: Message, decorate: Decorate) -> Message:
    """The message with the text in which the fence stands changed as a host changes it."""

    def changed(value: object) -> object:
        match value:
            case str() if "[ctx:" in value:
                return decorate(value)
            case list():
                return [changed(each) for each in value]
            case dict():
                return {name: changed(each) for name, each in value.items()}
            case _:
                return value

    return {name: changed(value) for name, value in reversed(message.items())}


@pytest.fixture(
    scope="module", params=[(dialect, at) for dialect in DIALECTS for at in ("message", "append")]
)
def spoken(request: pytest.FixtureRequest) -> Iterator[tuple[Host, Talk]]:
    """A host that gets memory of its other sessions, in messages or for the end of its own."""
    dialect, placement = request.param
    config = {"plugins": {"slots": {"memory": ["history"]}}, "memory": {"placement": placement}}
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        host = Host(Path(folder) / "state", message_format=dialect, config=config)
        other = told(Talk(dialect), [], waiting=False)
        host.call("context/bootstrap", sessionId="other", messages=other)
        yield host, Talk(dialect)
        host.close()


stories = st.builds(
    Story,
    st.lists(
        st.builds(
            Turn, st.integers(20, 120), st.sampled_from([5, 60, 900]), st.integers(0, 5).map(lambda n: n == 0)
        ),
        min_size=10,
        max_size=20,
    ),
    st.sampled_from(ENGINES),
    st.sampled_from([900, 1600, 2600]),
    st.booleans(),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
BOUNDED = settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def comes_back(
    host: Host,
    talk: Talk,
    story: Story,
    decorate: Decorate,
    way: Callable[[Host, str, list[Message], list[Message]], None],
) -> set[str]:
    """Play a story, and hand back whatever the sidecar put into its answer; the kinds of marks in that."""
    session = f"s{next(_names)}"
    said = told(talk, story.turns, waiting=story.waiting)
    host.call("session/configure", sessionId=session, engine=story.engine)
    host.call("context/bootstrap", sessionId=session, messages=said)
    if story.engine != "recall":
        host.call("context/compact", sessionId=session, tokenBudget=story.budget, force=True)
    answer = host.call("context/assemble", sessionId=session, tokenBudget=story.budget, prompt=PROMPT)
    listed, appended = answer["messages"], answer.get("userMessageAppend", "")
    made = [message for message in listed if message not in said]
    kinds: set[str] = set()
    for message in [*made, *filter(None, [appended])]:
        text = json.dumps(message)
        assert "[ctx:" in text
        kinds.add(text.partition("[ctx:")[2].partition(":")[0])
    again = host.call(
        "context/assemble", sessionId=session, tokenBudget=story.budget, prompt=PROMPT, messages=listed
    )
    assert again["messages"] == listed
    if story.restarted:
        host.restart(kill=True)
    for _ in range(story.forks):
        parent, session = session, f"s{next(_names)}"
        host.call("session/fork", sessionId=parent, newSessionId=session)
        if story.deleted:
            host.call("session/delete", sessionId=parent)
    assert history(host, session) == said
    new = talk.turn(99)
    if appended:
        new[0] = talk.user(f"{words(5)}\n\n{decorate(appended)}")
    way(host, session, [decorated(message, decorate) for message in made], new)
    assert history(host, session) == [*said, *new]
    grep = {"kind": "literal", "pattern": "4711 crowns"}
    found = host.call("tools/call", sessionId=session, name="context_grep", arguments=grep)
    matches = [match for group in found["structuredContent"]["groups"] for match in group["matches"]]
    assert [match["position"] for match in matches] == [1], "memory is no word of the user"
    return kinds


@settings(BOUNDED)
@given(story=stories, decorate=st.sampled_from(DECORATIONS), way=st.sampled_from(WAYS))
def test_what_the_sidecar_made_is_known_when_it_comes_back(
    spoken: tuple[Host, Talk],
    story: Story,
    decorate: Decorate,
    way: Callable[[Host, str, list[Message], list[Message]], None],
) -> None:
    comes_back(*spoken, story, decorate, way)


KINDS = [
    ("default", 1600, False, {"summary"}),
    ("terse", 2600, False, {"activityLog", "ack"}),
    ("recall", 1600, False, {"recall"}),
    ("full", 900, True, {"stub"}),
    ("full", 2600, False, {"noResult"}),
    ("full", 2600, False, {"memory"}),
]
"""Engine, budget, whether a long result waits for its answer, and the kinds of marks that this brings."""


def test_every_kind_of_mark_is_known_when_it_comes_back(spoken: tuple[Host, Talk]) -> None:
    for way, (engine, budget, waiting, kinds) in zip([*WAYS, by_batch], KINDS, strict=True):
        cut_short = 18 if "noResult" in kinds else None
        told = [Turn(60, 60, interrupted=number == cut_short) for number in range(20)]
        story = Story(told, engine, budget, restarted=False, forks=1, deleted=True, waiting=waiting)
        assert comes_back(*spoken, story, with_a_time, way) >= kinds, engine


@pytest.mark.soak
@settings(BOUNDED, max_examples=500, derandomize=False)
@given(story=stories, decorate=st.sampled_from(DECORATIONS), way=st.sampled_from(WAYS))
def test_what_the_sidecar_made_is_known_in_the_long_run(
    spoken: tuple[Host, Talk],
    story: Story,
    decorate: Decorate,
    way: Callable[[Host, str, list[Message], list[Message]], None],
) -> None:
    comes_back(*spoken, story, decorate, way)
