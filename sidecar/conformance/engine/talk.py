"""Messages to check engines with, in the dialect of chat completions."""

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
RULES = {"role": "system", "content": "You are a careful assistant."}


def user(text: str) -> Message:
    """A message of the user."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """A message of the assistant."""
    return {"role": "assistant", "content": text}


def tool_use(number: int, result: str) -> list[Message]:
    """A call, and its result."""
    call = {
        "id": f"call_{number}_x",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path":"file{number}"}}'},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}_x", "content": result},
    ]


def turn(number: int, words: int = 60) -> list[Message]:
    """A turn with a call, all of its texts unlike those of other turns."""
    filler = " ".join(f"word{number}_{i}" for i in range(words))
    return [
        user(f"Question {number}: {filler}"),
        *tool_use(number, f"Result {number}: {filler}"),
        assistant(f"Answer {number}: {filler}"),
    ]


def turns(count: int, words: int = 60) -> list[Message]:
    """Rules of the system, then so many turns."""
    return [RULES, *(message for number in range(1, count + 1) for message in turn(number, words))]


def texts(messages: Sequence[Message]) -> list[str]:
    """The texts of messages, empty where there is none."""
    return [content if isinstance(content := message.get("content"), str) else "" for message in messages]
