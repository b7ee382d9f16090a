"""Two agents on one sidecar, at random: each is answered as if it were alone.

The model of an agent is a sidecar that serves nobody else. Whatever an agent asks of the shared one, its
model is asked too, and both have to answer alike. The one exception is an id that the other agent has taken:
whoever would make a session under it is refused, and learns no more.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from sidecar.protocol.methods import METHODS
from tests.e2e.sidecar_host import Host, Params, Refused, history
from tests.e2e.talk import Talk

MISSING = 1003
TALK = Talk("openai")
QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where nothing waits for a disk: what is durable is for other tests."""
SECRETS = ("amber", "birch")
"""A word of each agent, in everything that it says."""
OWN_WORDS = re.compile(r"amber\|birch|(What do you know of|What of|Keep) amber and birch")
"""What every agent asks, with the words of both: an answer may repeat it."""
MAKERS = {
    "context/ingest": "sessionId",
    "context/ingestBatch": "sessionId",
    "context/bootstrap": "sessionId",
    "context/afterTurn": "sessionId",
    "context/commitTurn": "sessionId",
    "context/assemble": "sessionId",
    "session/fork": "newSessionId",
    "subagent/prepareSpawn": "childSessionId",
}
"""Methods that make a session, and the member that names it."""
CONFIG = {
    "plugins": {"slots": {"memory": ["history", "facts"]}},
    "sessions": {"statelessSessionPatterns": ["**stateless**"]},
}
_examples = count(1)


class Learned(NamedTuple):
    """Something that an earlier answer of this name brought, to the agent that asks or to the other one."""

    name: str
    number: int
    own: bool


class Said(NamedTuple):
    """A message of the agent that asks."""

    number: int


class Step(NamedTuple):
    """A request of an agent."""

    agent: int
    method: str
    params: Params
    restarted: bool = False
    """Whether the sidecars are killed and started again before."""


def learned(name: str) -> st.SearchStrategy[Any]:
    """Mostly what the agent itself was told."""
    return st.builds(Learned, st.just(name), st.integers(0, 3), st.sampled_from([True, True, False]))


sessions = st.sampled_from(["s0", "s1", "s2", "stateless"])
keys = st.sampled_from(["k0", "k1"])
said = st.builds(Said, st.integers(0, 9))
message_ids = st.sampled_from(["m0", "m1", "m2"]) | learned("messageId")
calls = st.sampled_from(
    [
        ("context_grep", {"pattern": "amber|birch"}),
        ("context_search", {"query": "What of amber and birch?", "mode": "relevant"}),
        ("context_search", {"query": "number", "mode": "search"}),
        ("context_search", {"mode": "turn", "turnId": "t1"}),
        ("context_search", {"mode": "tail"}),
        ("context_expand", {"first": 1, "last": 9}),
        ("context_expand", {"messageId": Learned("messageId", 0, own=False)}),
        ("context_expand", {"messageId": Learned("messageId", 0, own=True), "form": "json"}),
        ("context_expand", {"node": Learned("nodeId", 0, own=False)}),
        ("context_describe", {}),
        ("context_describe", {"node": Learned("nodeId", 0, own=False)}),
        ("context_ask", {"question": "What of amber and birch?"}),
        ("no-such-tool", {}),
    ]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "sessionId": sessions,
    "newSessionId": sessions,
    "parentSessionId": sessions,
    "childSessionId": sessions,
    "sessionKey": keys,
    "parentSessionKey": keys,
    "childSessionKey": keys,
    "message": said,
    "messages": st.lists(said, max_size=3),
    "messageId": message_ids,
    "afterMessageId": message_ids,
    "atMessageId": message_ids,
    "advancementKey": st.sampled_from(["once", "twice"]),
    "contextMode": st.sampled_from(["fork", "isolated"]),
    "childAgentId": st.just("third"),
    "reason": st.sampled_from(["deleted", "completed", "released"]),
    "preparationId": learned("preparationId"),
    "pinId": learned("pinId"),
    "resultId": learned("resultId"),
    "previousResultId": learned("resultId"),
    "cursor": learned("nextCursor"),
    "limit": st.just(1),
    "tokenBudget": st.sampled_from([300, 4000, 100_000]),
    "force": st.booleans(),
    "prompt": st.just("What do you know of amber and birch?"),
    "injectionPoint": st.sampled_from(["session-start", "per-message"]),
    "text": st.just("keep this"),
    "engine": st.sampled_from(["default", "full", "legacy", "lossless", "recall", "sliding-window", "terse"]),
    "config": st.just({}),
    "projection": st.just("codex"),
    "turnId": st.sampled_from(["t1", "t2"]),
    "note": st.just("a note"),
    "isHeartbeat": st.booleans(),
    "background": st.booleans(),
    "pendingTokens": st.just(500),
    "availableTools": st.just(["context_search"]),
    "customInstructions": st.just("Keep amber and birch."),
}
"""What agents say, by the name of the member. Members that are not here are left out."""


def requests_of_agents() -> dict[str, tuple[list[str], list[str]]]:
    """The required and the optional members of every method that an agent has sessions by."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for method in METHODS:
        members = fields(method.load(method.params))
        if method.direction == "serverToHost" or "agentId" not in {m.encode_name for m in members}:
            continue
        required = [m.encode_name for m in members if m.required and m.encode_name != "agentId"]
        optional = [m.encode_name for m in members if not m.required and m.encode_name in VALUES]
        found[method.name] = (required, optional)
    return found


REQUESTS = requests_of_agents()


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Any method with any of its members."""
    agent = draw(st.integers(0, 1))
    makes = draw(st.booleans())
    method = draw(st.sampled_from(sorted(MAKERS if makes else REQUESTS)))
    required, optional = REQUESTS[method]
    params = {name: draw(VALUES[name]) for name in required if name in VALUES}
    params |= {name: draw(VALUES[name]) for name in optional if draw(st.integers(0, 2)) == 0}
    if method == "tools/call":
        params["name"], params["arguments"] = draw(calls)
    return Step(agent, method, params, restarted=draw(st.integers(0, 40)) == 17)


class World:
    """A sidecar, and what it has told each of its agents."""

    def __init__(self, host: Host, other: "World | None" = None) -> None:
        self.host = host
        self.other = other or self
        """The world whose ids of the other agent are tried, so that both are asked the same."""
        self.told: dict[tuple[int, str], list[str]] = {}
        self._names: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def ask(self, step: Step, example: int) -> tuple[str, int | None]:
        """The answer without what differs between any two sidecars, and the code of an error."""
        params = {name: self._filled(name, value, step.agent, example) for name, value in step.params.items()}
        code = None
        try:
            answer = self.host.call(step.method, agentId=f"agent{step.agent}-{example}", **params)
        except Refused as error:
            answer, code = {"error": str(error)}, error.code
        self._learn(answer, step.agent)
        return self._renamed(answer, step.agent, params), code

    def has(self, session: str, agent: int, example: int) -> bool:
        """Whether the agent has this session."""
        params = {"sessionId": f"{session}-{example}", "agentId": f"agent{agent}-{example}"}
        try:
            self.host.call("session/get", **params)
        except Refused:
            return False
        return True

    def _filled(self, name: str, value: Any, agent: int, example: int) -> Any:
        match value:
            case Said(number):
                return TALK.user(
                    f"{SECRETS[agent]} number {number} of {example} is here. My port is {number}."
                )
            case Learned(kind, number, own):
                told = self.told if own else self.other.told
                known = told.get((agent if own else 1 - agent, kind), [])
                return known[number % len(known)] if known else "never-heard"
            case list():
                return [self._filled(name, each, agent, example) for each in value]
            case dict():
                return {member: self._filled("", each, agent, example) for member, each in value.items()}
            case str() if name.lower().endswith(("sessionid", "sessionkey", "agentid")):
                return f"{value}-{example}"
            case _:
                return value

    def _learn(self, answer: Any, agent: int) -> None:
        for name, value in _members(answer):
            if name in ("messageId", "pinId", "preparationId", "resultId", "nodeId", "nextCursor"):
                self.told.setdefault((agent, name), []).append(value)
                self._names[agent].setdefault(value, f"<{name}>")

    def _renamed(self, answer: Any, agent: int, params: dict[str, Any]) -> str:
        text = json.dumps(_timeless(answer), sort_keys=True)
        for id, name in self._names[agent].items():
            text = text.replace(id, name)
        # What an agent sent itself tells it nothing, also where the id is one of the other agent's.
        for id in re.findall(r"live-[0-9a-f]{16}", json.dumps(params)):
            text = text.replace(id, "<messageId>")
        # A pattern that found nothing is named in the answer; it is the agent's own word.
        text = text.replace('match \\"amber|birch\\"', "match <pattern>")
        # Each sidecar stores a message at a time of its own.
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>", text)
        # So do ids and fingerprints of projections.
        text = re.sub(r"\b[0-9a-f]{24}\b", "*", text)
        return re.sub(r"\b[a-z2-7]{8}-(?=\d)|(?<=:)\d{18}(?=\])", "*", text)


def _members(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _members(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                yield name, each
            yield from _members(each)


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if isinstance(value, dict):
        return {
            name: _timeless(each)
            for name, each in value.items()
            if not name.endswith("At") and name != "timestamp"
        }
    return value


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        started = [Host(Path(folder) / name / "state", config=CONFIG) for name in ("both", "a", "b")]
        yield started
        for host in started:
            host.close()


def play(hosts: list[Host], story: list[Step]) -> None:
    """Ask everything, and compare what the agents were told and what is left."""
    example = next(_examples)
    shared = World(hosts[0])
    alone = [World(host, shared) for host in hosts[1:]]
    taken: tuple[set[str], set[str]] = (set(), set())
    spawned: tuple[set[str], set[str]] = (set(), set())
    for step in story:
        for host in hosts if step.restarted else ():
            host.restart(kill=True)
        answer, code = shared.ask(step, example)
        other = 1 - step.agent
        assert SECRETS[other] not in OWN_WORDS.sub("", answer), (step, answer)
        made = step.params.get(MAKERS.get(step.method, ""))
        if code == MISSING and made in taken[other] and not alone[step.agent].has(made, step.agent, example):
            continue
        expected = alone[step.agent].ask(step, example)
        assert (answer, code) == expected, (step, answer, expected)
        if made is not None and code is None:
            taken[step.agent].add(made)
        if code is None and step.params.get("sessionKey", "") in spawned[step.agent]:
            # The first session under the key of a prepared child is that child, whatever is asked about it.
            taken[step.agent].add(step.params.get("sessionId", ""))
        if step.method == "subagent/prepareSpawn" and code is None:
            spawned[step.agent].add(step.params["childSessionKey"])
        if step.method == "session/delete" and code is None:
            taken[step.agent].discard(step.params["sessionId"])
    for agent in range(2):
        listing = Step(agent, "session/list", {})
        assert shared.ask(listing, example) == alone[agent].ask(listing, example)
        for entry in alone[agent].host.call("session/list", agentId=f"agent{agent}-{example}")["sessions"]:
            id = entry["sessionId"]
            assert history(shared.host, id) == history(alone[agent].host, id), (agent, id)


stories = st.lists(steps(), min_size=20, max_size=60)
QUIET = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


@settings(QUIET)
@given(stories)
def test_an_agent_is_answered_as_if_it_were_alone(hosts: list[Host], story: list[Step]) -> None:
    play(hosts, story)


@pytest.mark.soak
@settings(QUIET, max_examples=600, derandomize=False)
@given(stories)
def test_an_agent_is_answered_as_if_it_were_alone_in_the_long_run(
    hosts: list[Host], story: list[Step]
) -> None:
    play(hosts, story)


def test_every_required_member_of_a_request_is_said() -> None:
    unsaid = {
        (method, name)
        for method, (required, _) in REQUESTS.items()
        for name in required
        if name not in VALUES
    }
    assert unsaid == {("tools/call", "name")}
    assert MAKERS.keys() <= REQUESTS.keys()
