"""Sessions whose assistant writes terse tags, and what to expect of their answers."""

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.e2e.sidecar_host import Host

Json = dict[str, Any]

LINE = re.compile(r"^\[(\S+) (\d{4}-\d\d-\d\dT\d\d:\d\d)\] assistant: (.*)$")
HEADER = "[Context -- Activity Log]"


def stamp(number: int) -> str:
    """Half past the `number`th minute of an afternoon."""
    return f"2024-01-15T{12 + number // 60:02}:{number % 60:02}:30Z"


def minute(number: int) -> str:
    """The same as a log line shows it."""
    return stamp(number)[:16]


def turn(number: int, *, summary: str | None = "", words: int = 4) -> list[Json]:
    """A turn of three messages; `summary` is what the tag says, `None` for no tag."""
    said = f"answer {number} " + "word " * words
    if summary is not None:
        said += f"\n<terse>{summary or f'did {number}'}</terse>"
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"},
        {"role": "assistant", "content": said},
    ]


def tell(host: Host, session: str, turns: Sequence[tuple[int, list[Json]]]) -> None:
    """Ingest turns, each with the time of its number."""
    waiting = [
        host.send("context/ingest", sessionId=session, message=message, timestamp=stamp(number))
        for number, messages in turns
        for message in messages
    ]
    for id in waiting:
        host.wait(id)


def tell_turns(host: Host, session: str, first: int, last: int, **options: Any) -> None:
    """Ingest turns of these numbers."""
    tell(host, session, [(number, turn(number, **options)) for number in range(first, last + 1)])


def use_terse(host: Host, session: str, **config: Any) -> None:
    """Let a session be served by `terse`."""
    host.call("session/configure", sessionId=session, engine="terse", config=config)


def assemble(host: Host, session: str, budget: int = 50_000, **params: Any) -> Json:
    """What the model sees."""
    return host.call("context/assemble", sessionId=session, tokenBudget=budget, **params)


def log_of(answer: Json) -> list[str]:
    """The lines of the log, fence and header left out; nothing where there is no log."""
    for message in answer["messages"]:
        text = text_of(message)
        if "[ctx:activityLog:log:" in text:
            lines = text.splitlines()
            assert lines[1] == HEADER and lines[-1] == "[/ctx]"
            return lines[2:-1]
    return []


def logged(answer: Json) -> list[str]:
    """What the lines of the log say."""
    found = [LINE.match(line) for line in log_of(answer)]
    assert all(found)
    return [line[3] for line in found if line]


def text_of(message: Json) -> str:
    """The visible text of a message."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())


def questions(answer: Json) -> list[int]:
    """The numbers of the turns whose question is there in full."""
    texts = [text_of(m) for m in answer["messages"] if m["role"] == "user"]
    return [int(text.removeprefix("question ")) for text in texts if text.startswith("question ")]


def search(host: Host, session: str, **arguments: Any) -> str:
    """The text that `context_search` gives."""
    result = host.call("tools/call", sessionId=session, name="context_search", arguments=arguments)
    return result["content"][0]["text"]


def same(message: Json) -> str:
    """A message in a form that can be compared."""
    return json.dumps(message, sort_keys=True)
