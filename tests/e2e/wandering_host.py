"""A host that does at random what hosts do to their transcripts, and knows what should have become of it."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

from hypothesis import strategies as st

from tests.e2e.judge import problems
from tests.e2e.sidecar_host import Caller, exported
from tests.e2e.talk import STAMP_MS, Message, Talk

LARGE = 200_000
ENGINES = ("full", "terse", "default", "sliding-window", "lossless", "recall")
STORING = ("full", "default", "sliding-window")

_NUMBERED = re.compile(r"#(\d+)#")
_FENCED = re.compile(r"\[ctx:.*?\[/ctx\]", re.DOTALL)
_TOPICS = (
    "please look at the build of the northern branch",
    "数据库 连接 超时 請檢查設定",
    "half a face \ud83d and nothing more",
    "naïve straße\nwith a second line",
)
_sessions = count(1)

Plan = dict[str, Any]

TOLD = (
    "commit",
    "commit twice",
    "commit again later",
    "commit a part",
    "nobody",
    "ingest",
    "ingest with ids",
    "ingest twice with ids",
    "ingest in a loop",
    "ingest and commit",
    "batch with ids and commit",
    "after turn",
    "whole after turn",
)
BEFORE = (
    "bootstrap",
    "assemble",
    "hand back",
    "keep",
    "tail",
    "gap",
    "stored",
    "compact",
    "restart",
    "switch",
)
CHANGES = ("nothing", "nothing", "edit", "decorate", "sanitise", "merge", "unstamp")

steps = st.fixed_dictionaries(
    {
        "told": st.sampled_from(TOLD),
        "before": st.lists(st.sampled_from(BEFORE), max_size=3),
        "kind": st.sampled_from(("plain", "tool", "tools", "short", "heartbeat")),
        "change": st.sampled_from(CHANGES),
        "at": st.integers(0, 1000),
        "budget": st.sampled_from((LARGE, LARGE, 2000, 700)),
    }
)
sessions = st.fixed_dictionaries(
    {
        "stamps": st.booleans(),
        "names": st.booleans(),
        "system": st.sampled_from(("none", "fixed", "changing")),
        "told": st.sampled_from(("plainly", "with memory", "projected")),
        "steps": st.lists(steps, min_size=1, max_size=8),
    }
)


class Restartable(Caller, Protocol):
    """What can go on with another sidecar on the same state."""

    def restart(self) -> None:
        """Go on with another sidecar."""
        ...


class WanderingHost:
    """Plays turns; `transcript` is what happened, `view` how the host shows it now."""

    def __init__(self, host: Restartable, talk: Talk, plan: Plan) -> None:
        self.host, self.talk = host, talk
        self.stamps = plan["stamps"] and talk.dialect == "openclaw"
        self.names = plan["names"]
        self.system = plan["system"] if talk.dialect in ("openai", "openai-responses") else "none"
        self.told = plan["told"]
        self.session = f"wandering-{next(_sessions)}"
        self.transcript: list[int] = []
        """Numbers of all messages in order."""
        self.view: list[Message] = []
        self._by_stamp: dict[int, int] = {}
        self._next = 0
        self._turns: list[tuple[str, list[Message], bool]] = []
        self._stored = 0
        if self.system != "none":
            number, _ = self._count("system")
            self.view.append({"role": "system", "content": f"be good to the user #{number}#"})
        for step in plan["steps"]:
            self._play(step)

    def finish(self) -> None:
        """Show everything once more; every message is stored once, in order."""
        self._call("context/bootstrap", messages=self.view)
        entries = exported(self.host, self.session)
        assert [self.number(entry["message"]) for entry in entries] == self.transcript
        positions = [int(entry["turnId"][1:]) for entry in entries]
        assert positions == sorted(positions), f"turns out of order: {positions}"

    def number(self, message: Message) -> int:
        """The number of a message of the host's."""
        if (stamp := message.get("timestamp")) in self._by_stamp:
            return self._by_stamp[stamp]
        return int(_NUMBERED.findall(_FENCED.sub("", json.dumps(message, ensure_ascii=False)))[0])

    # What happens in a turn

    def _play(self, step: Plan) -> None:
        self._change(step["change"], step["at"])
        heartbeat = step["kind"] == "heartbeat"
        turn = self._turn(step["kind"], step["at"])
        for call in step["before"]:
            self._before(call, turn[0], step)
        self._asked(turn)
        self._tell(step["told"], turn, heartbeat)
        self.view += turn

    def _asked(self, turn: list[Message]) -> None:
        """Ask for the turn's context as hosts do that keep what they are given with the user's words."""
        if self.told == "plainly" or not self.view:
            return
        asked = {"projection": "codex"} if self.told == "projected" else {}
        answer = self._assembled(self.view, prompt=_text(turn[0]), tokenBudget=LARGE, **asked)
        text = f"{_text(turn[0])}\n\n{answer.get('userMessageAppend', '')}".strip()
        if asked:
            text = answer["contextProjection"]["prompt"]
        self._set_text(turn, 0, text)

    def _turn(self, kind: str, at: int) -> list[Message]:
        talk = self.talk
        if kind == "short" and not self.stamps:
            kind = "plain"
        if kind in ("plain", "short", "heartbeat"):
            return [self._said(talk.user, kind, at), self._said(talk.assistant, kind, at)]
        calls = 1 if kind == "tool" else 2
        turn = [self._said(talk.user, kind, at)]
        for _ in range(calls):
            number, stamp = self._count(kind)
            call_id = f"call_{number * 7919 % 99991}_a{number:06d}"
            turn.append(talk.call(call_id, "look", {"n": f"#{number}#"}, stamp=stamp))
            number, stamp = self._count(kind)
            turn.append(talk.result(call_id, "look", f"seen #{number}# {_TOPICS[at % 4]}", stamp=stamp))
        return [*turn, self._said(talk.assistant, kind, at)]

    def _said(self, make: Callable[..., Message], kind: str, at: int) -> Message:
        number, stamp = self._count(kind)
        text = "ok" if kind == "short" else f"{_TOPICS[at % 4]} #{number}#"
        message = make(text, stamp=stamp)
        if self.names and self.talk.dialect == "openclaw":
            message["responseId" if message["role"] == "assistant" else "idempotencyKey"] = f"r{number}"
        if self.names and self.talk.dialect == "openai-responses":
            message["id"] = f"msg_{number}"
        return message

    def _count(self, kind: str) -> tuple[int, int | None]:
        number = self._next
        self._next += 1
        self.transcript.append(number)
        if not self.stamps:
            return number, None
        if kind == "short":
            self._by_stamp[STAMP_MS + number] = number
        return number, STAMP_MS + number

    # What the host tells

    def _tell(self, how: str, turn: list[Message], heartbeat: bool) -> None:
        key = f"k{self._next}"
        mark = {"isHeartbeat": True} if heartbeat else {}
        self._stored += how != "nobody"
        if how in ("ingest", "ingest and commit"):
            for message in turn:
                self._call("context/ingest", message=message, **mark)
        if how.startswith("ingest") and how.endswith("ids"):
            for _ in range(2 if "twice" in how else 1):
                for message in turn:
                    named = {"messageId": f"h{self.number(message)}"}
                    self._call("context/ingest", message=message, **named, **mark)
        if how == "ingest in a loop":
            for message in turn:
                self._call("context/ingest", message=message, **mark)
                self._assembled(tokenBudget=LARGE)
        if how.startswith("batch"):
            ids = [f"h{self.number(message)}" for message in turn]
            self._call("context/ingestBatch", messages=turn, messageIds=ids, **mark)
        if how == "commit a part":
            self._call("context/commitTurn", advancementKey=key, messages=[turn[0], turn[-1]], **mark)
        elif how.startswith("commit") or how.endswith("commit"):
            for _ in range(2 if how == "commit twice" else 1):
                self._call("context/commitTurn", advancementKey=key, messages=turn, **mark)
        if how == "commit again later" and self._turns:
            known, earlier, beat = self._turns[-1]
            again = self._call("context/commitTurn", advancementKey=known, messages=earlier, isHeartbeat=beat)
            assert again["status"] == "duplicate"
        if "commit" in how:
            self._turns.append((key, turn, heartbeat))
        if how == "after turn":
            self._call("context/afterTurn", messages=turn, **mark)
        if how == "whole after turn":
            whole = [*self.view, *turn]
            self._call("context/afterTurn", messages=whole, prePromptMessageCount=len(self.view), **mark)

    # What comes before a turn

    def _before(self, call: str, opening: Message, step: Plan) -> None:
        view, at, budget = self.view, step["at"], step["budget"]
        if call == "bootstrap":
            self._call("context/bootstrap", messages=view)
        elif call == "restart":
            self._call("context/bootstrap", messages=view)
            self.host.restart()
        elif call == "switch":
            self._call("session/configure", engine=STORING[at % len(STORING)])
        elif call == "compact":
            self._call("context/bootstrap", messages=view)
            self._call("context/compact", force=True, tokenBudget=budget)
        elif call == "stored" and self._stored:
            self._assembled(tokenBudget=LARGE)
        elif call in ("assemble", "tail", "gap"):
            if call == "gap":
                # Nobody can tell on which side of what is left out an unknown message belongs.
                self._call("context/bootstrap", messages=view)
            self._assembled(self._shown(call, at), prompt=_text(opening), tokenBudget=LARGE)
        elif call == "hand back":
            self._handed_back(opening, budget)
        elif call == "keep" and view:
            self._call("context/bootstrap", messages=view)
            self.view = self._handed_back(opening, budget)

    def _handed_back(self, opening: Message, budget: int) -> list[Message]:
        """Our own answer, which is answered by itself."""
        prompt = _text(opening)
        answer = self._assembled(self.view, prompt=prompt, tokenBudget=budget)
        for _ in range(2):
            again = self._assembled(answer["messages"], prompt=prompt, tokenBudget=budget)
            assert again["messages"] == answer["messages"], f"an own answer is no fixed point: {again}"
            assert again["contextEpoch"] == answer["contextEpoch"], "an own answer raised the epoch"
        return answer["messages"]

    def _shown(self, call: str, at: int) -> list[Message]:
        begins = [i for i, message in enumerate(self.view) if _opens(message)]
        if call == "assemble" or len(begins) < 3:
            return self.view
        first = begins[at % len(begins)]
        if call == "tail":
            system = self.view[:1] if self.view[0].get("role") == "system" else []
            return [*system, *self.view[first:]]
        rest = begins[1:]
        i = at % (len(rest) - 1)
        return [*self.view[: rest[i]], *self.view[rest[i + 1] :]]

    def _assembled(self, messages: Sequence[Message] | None = None, **params: Any) -> Any:
        shown = {} if messages is None else {"messages": list(messages)}
        answer = self._call("context/assemble", **shown, **params)
        wrong = problems(self.talk.dialect, answer["messages"])
        assert not wrong, wrong
        numbers = [self.number(m) for m in answer["messages"] if self._is_plain(m)]
        assert numbers == sorted(set(numbers)), f"twice, or out of order: {numbers}"
        return answer

    def _is_plain(self, message: Message) -> bool:
        text = json.dumps(message, ensure_ascii=False)
        if message.get("timestamp") in self._by_stamp:
            return "[ctx:" not in text
        return bool(_NUMBERED.search(_FENCED.sub("", text)))

    # What the host does to its transcript

    def _change(self, change: str, at: int) -> None:
        view = self.view
        if self.system == "changing" and view and view[0].get("role") == "system":
            view[0] = {**view[0], "content": view[0]["content"] + f" It is {at} o'clock."}
        if change == "sanitise":
            text = json.dumps(view)
            self.view = json.loads(re.sub(r"call_(\d+)_a(\d+)", r"call\1a\2", text))
        elif change == "unstamp":
            stamped = [
                i for i, m in enumerate(view) if "timestamp" in m and m["timestamp"] not in self._by_stamp
            ]
            if stamped:
                i = stamped[at % len(stamped)]
                view[i] = {name: value for name, value in view[i].items() if name != "timestamp"}
        elif change == "decorate":
            self._rewrite(
                _opens, at, lambda text: text if text[0] == "[" else f"[Sat 2026-11-21 03:25 UTC] {text}"
            )
        elif change in ("edit", "merge"):
            more = " and a little more" if change == "edit" else "\nannounced by somebody else"
            self._rewrite(_is_reply, at, lambda text: text + more)

    def _rewrite(self, which: Callable[[Message], bool], at: int, change: Callable[[str], str]) -> None:
        chosen = [
            i for i, message in enumerate(self.view) if which(message) and "[ctx:" not in _text(message)
        ]
        if not chosen:
            return
        i = chosen[at % len(chosen)]
        self._set_text(self.view, i, change(_text(self.view[i])))

    def _set_text(self, messages: list[Message], i: int, text: str) -> None:
        content = messages[i]["content"]
        if isinstance(content, str):
            messages[i] = {**messages[i], "content": text}
        else:
            messages[i] = {**messages[i], "content": [{**content[0], "text": text}]}

    def _call(self, method: str, **params: Any) -> Any:
        return self.host.call(method, sessionId=self.session, **params)


def _text(message: Message) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else content[0].get("text") or ""


def _opens(message: Message) -> bool:
    return message.get("role") == "user" and bool(_text(message))


def _is_reply(message: Message) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls") and bool(_text(message))
