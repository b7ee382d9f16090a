"""Whatever happens to a session of `lossless`: pairs stay whole, budgets hold, all of it can be read back."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.inner_host import InnerHost, Silence
from tests.e2e.judge import problems
from tests.e2e.sidecar_host import Params, Refused

BUDGETS = (4000, 6000, 9000, 16_000)
OVERFLOW = 1002
LEAF_TOKENS = 120
SMALL = {"leafSourceTokens": 500, "leafTokens": LEAF_TOKENS, "condensedTokens": 160, "fanIn": 3}
QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where nothing waits for a disk: what is durable is for other tests."""
TIME_MS = 60
"""For a model that never answers."""
MARK = re.compile(r"\[ctx:(summary|stub):([^:]+):\d+\]")
QUIET = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LONG = settings(QUIET, max_examples=300, derandomize=False)


class Step(NamedTuple):
    """One thing that happens to a session."""

    kind: str
    size: int
    budget: int


steps = st.builds(
    Step,
    st.sampled_from(
        ["turn", "turn", "turn", "loop", "wild", "assemble", "compact", "force", "end", "tidy", "again"]
    ),
    st.sampled_from([20, 60, 200]),
    st.sampled_from(BUDGETS),
)
stories = st.lists(steps, min_size=6, max_size=30)
faults = st.sampled_from(["none", "garbage", "empty", "too long", "error", "never", "good"])


def answer_of(fault: str) -> Any:
    """How the host's model answers."""

    def complete(params: Params) -> Params:
        shown = str(params["messages"][-1]["content"])
        match fault:
            case "garbage":
                return {"text": "lorem ipsum dolor " * 5}
            case "empty":
                return {"text": ""}
            case "too long":
                return {"text": shown * 2}
            case "never":
                raise Silence
            case _:
                return {"text": " ".join(dict.fromkeys(shown.split()[40:60]))}

    return complete


class Session:
    """One session that things happen to; every answer is looked at."""

    def __init__(self, folder: Path, dialect: str, fault: str, seed: int) -> None:
        limits = {"hostRequestTimeoutMs": TIME_MS if fault == "never" else 5000}
        own = {**SMALL, "modelPauseMs": 0}
        config = {"limits": limits, "plugins": {"entries": {"lossless": {"config": own}}}}
        capabilities = [] if fault == "none" else ["runtime/complete"]
        self.host = InnerHost(
            folder,
            message_format=dialect,
            engine="lossless",
            config=config,
            host={"id": "inner"},
            hostCapabilities=capabilities,
        )
        if fault != "error":
            self.host.answerers["runtime/complete"] = answer_of(fault)
        self.dialect = dialect
        self.speaker = Speaker(dialect, seed)
        self.messages: list[Any] = []
        self.ids: list[str] = []
        self.wild = False
        self._before: tuple[int, list[Any]] | None = None
        self._turn(Step("turn", 60, BUDGETS[0]))

    def live(self, step: Step) -> None:
        """Let one thing happen, then look at an answer."""
        match step.kind:
            case "turn" | "loop" | "wild":
                self._turn(step)
            case "compact" | "force":
                self._compact(step)
            case "end":
                self.host.restart()
            case "tidy":
                self.host.call("context/maintain", sessionId="s", tokenBudget=step.budget)
            case "again":
                self.host.call("context/afterTurn", sessionId="s", tokenBudget=step.budget)
            case _:
                pass
        self.look(step.budget)

    def look(self, budget: int) -> None:
        """An answer is valid, fits, covers every message, and goes on from the one before in its epoch."""
        try:
            answer = self.host.call("context/assemble", sessionId="s", tokenBudget=budget)
        except Refused as refused:
            assert refused.code == OVERFLOW and refused.data["required"] > budget
            return
        sent: list[Any] = answer["messages"]
        assert answer["estimatedTokens"] <= budget
        assert problems(self.dialect, sent) == []
        if not self.wild:
            assert self.uncovered(sent) == []
        if self._before is not None and self._before[0] == answer["contextEpoch"]:
            assert sent[: len(self._before[1])] == self._before[1], "another beginning in the same epoch"
        self._before = (answer["contextEpoch"], sent)

    def uncovered(self, sent: list[Any]) -> list[int]:
        """Places of messages that are neither sent, nor named by a stub, nor under a summary that is sent."""
        nodes = {node["nodeId"]: node for node in self.nodes()}
        place = {message_id: number for number, message_id in enumerate(self.ids)}
        missing = {number for number, message in enumerate(self.messages) if message not in sent}
        for kind, name in MARK.findall(" ".join(map(json.dumps, sent))):
            if kind == "stub":
                missing.discard(place[name])
                continue
            node = nodes[name]
            missing -= set(range(place[node["firstMessageId"]], place[node["lastMessageId"]] + 1))
        return sorted(missing)

    def nodes(self) -> list[Any]:
        """The summaries."""
        return self.host.call("session/summaries", sessionId="s")["summaries"]

    def check_pairs(self) -> None:
        """No summary of messages parts a call from its results."""
        place = {message_id: number for number, message_id in enumerate(self.ids)}
        calls: dict[str, set[int]] = {}
        for number, message in enumerate(self.messages):
            for call in re.findall(r'"(call_\d+)"', json.dumps(message)):
                calls.setdefault(call, set()).add(number)
        for node in self.nodes():
            inside = set(range(place[node["firstMessageId"]], place[node["lastMessageId"]] + 1))
            if not node["depth"] and node["nodeId"].startswith("n"):
                parted = [call for call, at in calls.items() if at & inside and not at <= inside]
                assert parted == [], f"{node['nodeId']} parts {parted}"

    def read_back(self) -> None:
        """Everything that was stored is reached from the widest summaries by the tools."""
        top = self._tool("context_describe")
        read: dict[int, str] = {}
        waiting = [source["nodeId"] for source in top["sources"]]
        while waiting:
            node = self._tool("context_describe", node=waiting.pop())
            waiting += [source["nodeId"] for source in node["sources"]]
            for first, last in node.get("withoutSummary", ()):
                self._read(read, node=node["nodeId"], first=first, last=last)
        for first, last in top["withoutSummary"]:
            self._read(read, first=first, last=last)
        assert [json.loads(read[position]) for position in sorted(read)] == self.messages

    def _read(self, read: dict[int, str], **where: Any) -> None:
        for part in self._pages(where):
            position = part["position"]
            known = read.get(position, "") if part["start"] else ""
            assert len(known) == part["start"]
            read[position] = known + part["text"]

    def _pages(self, where: Params) -> Iterator[Params]:
        cursor: Params = {}
        while True:
            page = self._tool("context_expand", form="json", **where, **cursor)
            yield from page["messages"]
            if "nextCursor" not in page:
                return
            cursor = {"cursor": page["nextCursor"]}

    def _tool(self, name: str, **arguments: Any) -> Any:
        answer = self.host.call("tools/call", sessionId="s", name=name, arguments=arguments)
        assert not answer.get("isError"), answer["content"]
        return answer["structuredContent"]

    def _turn(self, step: Step) -> None:
        speaker = self.speaker
        match step.kind:
            case "wild":
                self.wild = True
                raw = speaker.wild_turn(step.size)
            case "loop":
                raw = [m for _ in range(8) for m in speaker.group(step.size)] if self.messages else []
            case _:
                raw = speaker.turn(step.size)
        told = [json.loads(message) for message in raw]
        answer = self.host.call("context/ingestBatch", sessionId="s", messages=told)
        self.messages += told
        self.ids += answer["messageIds"]

    def _compact(self, step: Step) -> None:
        force = step.kind == "force"
        done = self.host.call("context/compact", sessionId="s", tokenBudget=step.budget, force=force)
        assert done["ok"]
        if done["compacted"]:
            assert done["result"]["tokensAfter"] < done["result"]["tokensBefore"]
        else:
            assert done["reason"]


def run(dialect: str, fault: str, seed: int, story: list[Step]) -> None:
    """Live through a story, then look at what is left of it."""
    with tempfile.TemporaryDirectory(prefix="sidecar-story-", dir=QUICK) as folder:
        session = Session(Path(folder), dialect, fault, seed)
        try:
            for step in story:
                session.live(step)
            session.host.call("context/maintain", sessionId="s")
            session.check_pairs()
            session.read_back()
        finally:
            session.host.close()


BRIEF_OVER_A_GAP = [
    Step("turn", 20, 4000),
    Step("loop", 20, 4000),
    Step("turn", 20, 4000),
    Step("force", 20, 4000),
    Step("force", 20, 4000),
    Step("turn", 20, 4000),
]


STUBBED_LOOP = [Step("loop", 200, 6000), *[Step("turn", 20, 4000)] * 5]


@pytest.mark.timeout(600)
@QUIET
@example(dialect="openai", fault="none", seed=0, story=STUBBED_LOOP)
@example(dialect="openai", fault="none", seed=297, story=BRIEF_OVER_A_GAP)
@given(st.sampled_from(DIALECTS), faults, st.integers(0, 99), stories)
def test_every_story_keeps_the_promises(dialect: str, fault: str, seed: int, story: list[Step]) -> None:
    run(dialect, fault, seed, story)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@LONG
@given(st.sampled_from(DIALECTS), faults, st.integers(0, 9999), stories)
def test_many_stories_keep_the_promises(dialect: str, fault: str, seed: int, story: list[Step]) -> None:
    run(dialect, fault, seed, story)
