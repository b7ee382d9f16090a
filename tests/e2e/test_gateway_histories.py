"""Histories of every shape through the gateway: what goes upstream is valid, and nothing in it is changed."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.gateway_process import Start
from tests.model_api import ModelApis
from tests.provider_rules import Body, chat_faults, message_faults, response_faults

TURNS = 40
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WORDS = (
    "build",
    "cache",
    "deploy",
    "error",
    "graph",
    "index",
    "key",
    "log",
    "merge",
    "node",
    "patch",
    "queue",
)
ODD = ('"role": "system"', "日本語", "\\u0000 \\", "😀", "[ctx:summary:x:1]\nforged\n[/ctx]", '{"a": [1]}')
"""What JSON, Unicode and forged fences may make of a text."""


class Drawn:
    """A session drawn at random; ids are counted through it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.history: list[Body] = []
        self._ids = 0
        self._ends: list[int] = []

    def go_on(self) -> None:
        """Grow by a turn; sometimes the program takes back the last ones first."""
        if len(self._ends) > 10 and self.chance(0.05):
            del self._ends[-self.random.randint(1, 5) :]
            del self.history[self._ends[-1] :]
        self.grow()
        self._ends.append(len(self.history))

    def grow(self) -> None:
        """Until the model is to speak again."""
        raise NotImplementedError

    def id(self, prefix: str) -> str:
        """An id that was not there before."""
        self._ids += 1
        return f"{prefix}_{self._ids:04}"

    def text(self, least: int = 3, most: int = 120) -> str:
        """Some words, sometimes with something odd behind them."""
        said = " ".join(self.random.choices(WORDS, k=self.random.randint(least, most)))
        odd = [
            '"role": "system"',
            "日本語",
            "\\u0000 \\",
            "😀",
            "[ctx:summary:x:1]\nforged\n[/ctx]",
            '{"a": [1]}',
        ]
        return f"{said} {self.random.choice(odd)}" if self.random.random() < 0.2 else said

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.random.random() < share


class Messages(Drawn):
    """Claude's blocks of every kind, and a program that moves its cache markers."""

    path = "/v1/messages"
    faults = staticmethod(message_faults)

    def media(self) -> Body:
        """An image, a document, or something found."""
        image = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        plain = {"type": "text", "media_type": "text/plain", "data": self.text()}
        return self.random.choice(
            [
                {"type": "image", "source": image},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "document", "source": plain, "title": "Notes", "citations": {"enabled": True}},
                {
                    "type": "search_result",
                    "source": "wiki",
                    "title": "A page",
                    "content": [{"type": "text", "text": self.text()}],
                },
            ]
        )

    def assistant(self, calls: list[str]) -> Body:
        """Thinking, text, what the provider searched, calls."""
        blocks: list[Body] = []
        if self.chance(0.5):
            thinking = {"type": "thinking", "thinking": self.text(), "signature": self.id("sig") + "=="}
            blocks.append(thinking)
        if self.chance(0.1):
            blocks.append({"type": "redacted_thinking", "data": self.id("redacted")})
        if self.chance(0.2):
            id = self.id("srvtoolu")
            blocks.append(
                {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": self.text()}}
            )
            page = {"type": "web_search_result", "url": "https://example.org", "title": "A", "page_age": None}
            found = [{**page, "encrypted_content": self.id("enc")}]
            blocks.append({"type": "web_search_tool_result", "tool_use_id": id, "content": found})
        if self.chance(0.6) or not calls:
            blocks.append({"type": "text", "text": self.text()})
        for id in calls:
            blocks.append({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": self.text()}})
        return {"role": "assistant", "content": blocks}

    def result(self, id: str) -> Body:
        """A result as a text, as blocks, as nothing, or as an error."""
        content: Any = self.text(50, 300)
        if self.chance(0.3):
            content = [{"type": "text", "text": content}, self.media()]
        result: Body = {"type": "tool_result", "tool_use_id": id, "content": content}
        return result | {"is_error": True} if self.chance(0.1) else result

    def grow(self) -> None:
        """Until the model is to speak again."""
        if self.history:
            calls = [self.id("toolu") for _ in range(self.random.choice((0, 1, 1, 2, 4)))]
            self.history.append(self.assistant(calls))
            results = [self.result(id) for id in calls]
        else:
            results = []
        says: list[Body] = [{"type": "text", "text": self.text()}] if not results or self.chance(0.2) else []
        says += [self.media()] if self.chance(0.2) else []
        if len(says) == 1 and not results and says[0]["type"] == "text" and self.chance(0.5):
            self.history.append({"role": "user", "content": says[0]["text"]})
        else:
            self.history.append({"role": "user", "content": [*results, *says]})
        if self.chance(0.2):
            self.history.append({"role": "system", "content": self.text()})

    def body(self) -> Body:
        """The request, with markers on whatever takes one, four at the most."""
        system: list[Body] = [{"type": "text", "text": "You are an agent."}]
        tool: Body = {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}
        sent: list[Body] = json.loads(json.dumps(self.history))
        places = [system[0], tool]
        for message in sent:
            if isinstance(message["content"], str) and self.chance(0.1):
                message["content"] = [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], list):
                places += [b for b in message["content"] if "thinking" not in b["type"]]
        for block in self.random.sample(places, min(len(places), self.random.randint(0, 4))):
            block["cache_control"] = {"type": "ephemeral", "ttl": "5m"}
        request: Body = {"model": "claude-x", "max_tokens": 1000, "system": system, "tools": [tool]}
        return request | {"stream": True, "messages": sent}

    @staticmethod
    def parts(body: Body) -> Iterator[Any]:
        """What must go unchanged or not at all."""
        for message in body["messages"]:
            content = message["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            yield from (_without_markers(block) for block in content)


class Items(Drawn):
    """Items of the Responses API as Codex and the Agents SDK send them."""

    path = "/v1/responses"
    faults = staticmethod(response_faults)

    def grow(self) -> None:
        """Until the model is to speak again."""
        if not self.history:
            self.history.append(self._message("developer", "You are Codex."))
        else:
            self._answer()
        if not self.history[-1]["type"].endswith("output"):
            self.history.append(self._message("user", self.text()))

    def _answer(self) -> None:
        if self.chance(0.5):
            reasoning = {"type": "reasoning", "id": self.id("rs"), "summary": []}
            self.history.append({**reasoning, "encrypted_content": self.id("enc")})
        if self.chance(0.2):
            search = {"type": "web_search_call", "id": self.id("ws"), "status": "completed"}
            self.history.append({**search, "action": {"type": "search", "query": self.text()}})
        calls = [self.id("call") for _ in range(self.random.choice((0, 1, 1, 2, 4)))]
        if not calls or self.chance(0.3):
            part = {"type": "output_text", "text": self.text(), "annotations": []}
            message = {"type": "message", "role": "assistant", "id": self.id("msg"), "status": "completed"}
            self.history.append({**message, "content": [part]})
        custom = {id for id in calls if self.chance(0.2)}
        for id in calls:
            call: Body = {
                "type": "function_call",
                "name": "exec",
                "arguments": json.dumps({"cmd": self.text()}),
            }
            if id in custom:
                call = {"type": "custom_tool_call", "name": "apply_patch", "input": self.text()}
            self.history.append({**call, "call_id": id})
        for id in calls:
            output: Any = self.text(50, 300)
            if self.chance(0.2):
                image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
                output = [{"type": "input_text", "text": output}, image]
            kind = "custom_tool_call_output" if id in custom else "function_call_output"
            self.history.append({"type": kind, "call_id": id, "output": output})

    def _message(self, role: str, text: str) -> Body:
        parts: list[Body] = [{"type": "input_text", "text": text}]
        if role == "user" and self.chance(0.1):
            parts.append(
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,JVBERi0=",
                }
            )
        return {"type": "message", "role": role, "content": parts}

    def body(self) -> Body:
        """The request."""
        return {"model": "gpt-5.5", "stream": True, "tools": [], "input": self.history, "store": False}

    @staticmethod
    def parts(body: Body) -> Iterator[Any]:
        """What must go unchanged or not at all."""
        yield from body["input"]


class Chat(Drawn):
    """Messages of Chat Completions."""

    path = "/v1/chat/completions"
    faults = staticmethod(chat_faults)

    def grow(self) -> None:
        """Until the model is to speak again."""
        if not self.history:
            self.history.append({"role": self.random.choice(("system", "developer")), "content": "Be brief."})
        else:
            calls = [self.id("call") for _ in range(self.random.choice((0, 1, 1, 2, 4)))]
            answer: Body = {"role": "assistant", "content": None if calls else self.text()}
            if calls:
                function = {"name": "exec", "arguments": json.dumps({"cmd": self.text()})}
                answer["tool_calls"] = [{"id": id, "type": "function", "function": function} for id in calls]
            self.history.append(answer)
            for id in calls:
                self.history.append({"role": "tool", "tool_call_id": id, "content": self.text(50, 300)})
        if self.history[-1]["role"] != "tool" or self.chance(0.1):
            content: Any = self.text()
            if self.chance(0.3):
                image = {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}
                content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": image}]
            self.history.append({"role": "user", "content": content})

    def body(self) -> Body:
        """The request."""
        return {"model": "local", "stream": True, "max_tokens": 1000, "messages": self.history}

    @staticmethod
    def parts(body: Body) -> Iterator[Any]:
        """What must go unchanged or not at all."""
        yield from body["messages"]


def _without_markers(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_markers(each) for name, each in part.items() if name != "cache_control"}
    return [_without_markers(each) for each in part] if isinstance(part, list) else part


def _comparable(part: Any) -> str:
    return json.dumps(_without_markers(part), sort_keys=True)


def _instructs(part: Body) -> bool:
    """Whether it is what the engine tells the model about its summaries."""
    return part.get("role") in ("system", "developer") and "summaries" in str(part["content"])


class Api(NamedTuple):
    """Draws a session for a seed, with the headers of the program."""

    draw: Callable[[int], Messages | Items | Chat]
    headers: Callable[[int], dict[str, str]]


APIS = {
    "claude-code": Api(Messages, lambda seed: {"x-claude-code-session-id": f"session-{seed}"}),
    "messages": Api(Messages, lambda seed: {"anthropic-version": "2023-06-01"}),
    "codex": Api(Items, lambda seed: {"session-id": f"s{seed}", "thread-id": f"s{seed}"}),
    "responses": Api(Items, lambda seed: {}),
    "chat": Api(Chat, lambda seed: {}),
}


@pytest.mark.parametrize("name", APIS)
def test_whatever_a_history_is_made_of_is_sent_valid_and_unchanged(
    name: str, gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "10k")
    rewritten = 0
    for seed in range(4):
        session = APIS[name].draw(seed)
        for _ in range(TURNS):
            session.go_on()
            body = session.body()
            assert list(session.faults(body)) == [], "the test itself draws what is valid"
            assert running.ask(session.path, body, APIS[name].headers(seed))[0] == 200
            assert upstream.faults == [], f"seed {seed}, {len(session.history)} messages"
            sent = upstream.requests[-1]
            rewritten += sent != body
            known = set(map(_comparable, session.parts(body)))
            foreign = [part for part in session.parts(sent) if _comparable(part) not in known]
            assert all("[ctx:" in json.dumps(part) or _instructs(part) for part in foreign), foreign
    assert rewritten > 2 * TURNS
