"""Messages of the four dialects, as small as their providers allow."""

import json
from typing import Any

Message = dict[str, Any]

DIALECTS = ("openai", "openai-responses", "anthropic", "openclaw")
STAMP_MS = 1_795_000_000_000


class Talk:
    """Makes messages of one dialect; `stamp` adds a time stamp where the dialect has one."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def user(self, text: str, *, stamp: int | None = None) -> Message:
        """A message of the user."""
        if self.dialect == "openai-responses":
            return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        return self._stamped({"role": "user", "content": text}, stamp)

    def assistant(self, text: str, *, stamp: int | None = None) -> Message:
        """A reply."""
        if self.dialect == "openai":
            return {"role": "assistant", "content": text}
        if self.dialect == "openai-responses":
            part = {"type": "output_text", "text": text, "annotations": []}
            return {"type": "message", "role": "assistant", "content": [part]}
        return self._stamped({"role": "assistant", "content": [{"type": "text", "text": text}]}, stamp)

    def call(self, call_id: str, name: str, arguments: Message, *, stamp: int | None = None) -> Message:
        """A call of a tool."""
        if self.dialect == "openai":
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": call_id, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if self.dialect == "openai-responses":
            call = {"type": "function_call", "call_id": call_id, "name": name}
            return {**call, "arguments": json.dumps(arguments)}
        if self.dialect == "anthropic":
            block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        else:
            block = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        return self._stamped({"role": "assistant", "content": [block]}, stamp)

    def result(self, call_id: str, name: str, text: str, *, stamp: int | None = None) -> Message:
        """What the tool gave."""
        if self.dialect == "openai":
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        if self.dialect == "openai-responses":
            return {"type": "function_call_output", "call_id": call_id, "output": text}
        if self.dialect == "anthropic":
            block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
            return {"role": "user", "content": [block]}
        content = [{"type": "text", "text": text}]
        result = {"role": "toolResult", "toolCallId": call_id, "toolName": name, "content": content}
        return self._stamped({**result, "isError": False}, stamp)

    def turn(self, number: int) -> list[Message]:
        """A turn of four messages that nobody confuses with another one."""
        call_id = f"call_{number:04d}_Xy{number * 7919:08d}"
        return [
            self.user(f"question {number}: how much is {number} and {number}?"),
            self.call(call_id, "add", {"a": number, "b": number}),
            self.result(call_id, "add", f"sum {number} is {2 * number}"),
            self.assistant(f"answer {number}: it is {2 * number}."),
        ]

    def short_turn(self) -> list[Message]:
        """A turn that may come twice."""
        return [self.user("ok"), self.assistant("done")]

    def _stamped(self, message: Message, stamp: int | None) -> Message:
        if stamp is None or self.dialect != "openclaw":
            return message
        return {**message, "timestamp": stamp}


def turns(talk: Talk, *numbers: int) -> list[Message]:
    """Several turns behind each other."""
    return [message for number in numbers for message in talk.turn(number)]
