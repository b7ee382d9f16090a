"""Conversations in all four dialects, plain ones and such as real hosts leave behind."""

import base64
import json
from collections.abc import Sequence
from random import Random
from typing import Any

DIALECTS = ("openai", "openai-responses", "anthropic", "openclaw")

TEXT = """
the parser reads a token and returns None when nothing is left to take from this buffer
deploy staging cluster fails because certificate expired yesterday please rotate it now
def main(argv): return sum(int(x) for x in argv) # über straße naïve 数据库 连接 超时 請檢查設定 🙂
"""
WORDS = TEXT.split()

Call = tuple[str, str, dict[str, Any]]


class Speaker:
    """Writes messages of one dialect as a host would, with unusual spacing and members of its own."""

    def __init__(self, dialect: str, seed: int = 0) -> None:
        self.dialect = dialect
        self.random = Random(seed)
        self._calls = 0
        self._clock = 1_700_000_000_000

    def words(self, count: int) -> str:
        """Some text of about so many tokens."""
        return " ".join(self.random.choices(WORDS, k=max(count, 1)))

    def system(self, text: str) -> bytes:
        """A system message."""
        return self._message("system", text)

    def user(self, text: str) -> bytes:
        """A user message."""
        if self.dialect == "openai-responses":
            return self._message("user", [{"type": "input_text", "text": text}])
        return self._message("user", text)

    def picture(self, text: str, size: int = 3000) -> bytes:
        """A user message with an image."""
        data = base64.b64encode(bytes(size)).decode()
        parts: dict[str, list[Any]] = {
            "openai": [
                {"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
            ],
            "openai-responses": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
            ],
            "anthropic": [
                {"type": "text", "text": text},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
            ],
            "openclaw": [
                {"type": "text", "text": text},
                {"type": "image", "data": data, "mimeType": "image/png"},
            ],
        }
        return self._message("user", parts[self.dialect])

    def new_call(self, size: int = 8) -> Call:
        """A call that was never made before."""
        self._calls += 1
        return f"call_{self._calls}", self.random.choice(("read", "bash")), {"q": self.words(size)}

    def assistant(self, text: str, calls: Sequence[Call] = (), *, thinking: str = "") -> list[bytes]:
        """What the model says, in one message or several items."""
        if self.dialect == "openai":
            made = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
                for i, n, a in calls
            ]
            return [self._message("assistant", text or None, **({"tool_calls": made} if made else {}))]
        if self.dialect == "openai-responses":
            return self._items(text, calls, thinking)
        blocks: list[Any] = []
        if self.dialect == "anthropic":
            if thinking:
                blocks.append({"type": "thinking", "thinking": thinking, "signature": "c2ln"})
            if text:
                blocks.append({"type": "text", "text": text})
            blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
            return [self._message("assistant", blocks)]
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "thinkingSignature": "c2ln"})
        if text:
            blocks.append({"type": "text", "text": text})
        blocks += [{"type": "toolCall", "id": i, "name": n, "arguments": a} for i, n, a in calls]
        return [self._message("assistant", blocks, stopReason="toolUse" if calls else "stop")]

    def results(self, answers: Sequence[tuple[Call, str]]) -> list[bytes]:
        """Results of calls, as this dialect's hosts send them."""
        if self.dialect == "openai":
            return [self._raw({"role": "tool", "tool_call_id": c[0], "content": text}) for c, text in answers]
        if self.dialect == "openai-responses":
            kind = "function_call_output"
            return [self._raw({"type": kind, "call_id": c[0], "output": text}) for c, text in answers]
        if self.dialect == "openclaw":
            return [
                self._message(
                    "toolResult",
                    [{"type": "text", "text": text}],
                    toolCallId=c[0],
                    toolName=c[1],
                    isError=False,
                )
                for c, text in answers
            ]
        blocks = [
            {"type": "tool_result", "tool_use_id": c[0], "content": [{"type": "text", "text": text}]}
            for c, text in answers
        ]
        if self.random.random() < 0.3:
            return [self._message("user", [block]) for block in blocks]
        return [self._message("user", blocks)] if blocks else []

    def turn(self, size: int = 60, steps: int = 2) -> list[bytes]:
        """A whole turn: question, tool loop, answer."""
        messages = [self.user(self.words(size))]
        for _ in range(self.random.randint(0, steps)):
            messages += self.group(size)
        return messages + self.assistant(self.words(size))

    def group(self, size: int = 60) -> list[bytes]:
        """One call, or some calls in parallel, with their results."""
        calls = [self.new_call() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        thinking = self.words(size // 3) if self.random.random() < 0.3 else ""
        said = self.words(size // 4) if self.random.random() < 0.5 else ""
        answers = [(call, self.words(self.random.randint(1, size * 3))) for call in calls]
        return self.assistant(said, calls, thinking=thinking) + self.results(answers)

    def wild_turn(self, size: int = 60) -> list[bytes]:
        """A turn as it should not be: interrupted calls, orphans, empty messages, strange roles."""
        messages: list[bytes] = []
        for kind in self.random.choices(range(12), k=self.random.randint(1, 6)):
            messages += self._wild(kind, size)
        return messages

    def _wild(self, kind: int, size: int) -> list[bytes]:
        call, other = self.new_call(), self.new_call()
        match kind:
            case 0:
                return [self.user(self.words(size))]
            case 1:
                return self.assistant(self.words(size), [call])
            case 2:
                return self.results([(call, self.words(size))])
            case 3:
                return self.assistant("", [call, other]) + self.results([(other, self.words(size))])
            case 4:
                return [self.user("")] if self.random.random() < 0.5 else self.assistant("")
            case 5:
                return [self._raw({"role": "note", "content": self.words(size), "x": 1})]
            case 6:
                return [self.system(self.words(size // 4))]
            case 7:
                return [self.picture(self.words(8))]
            case 8:
                late = self.results([(call, self.words(size))])
                return [*self.assistant("", [call]), self.user(self.words(5)), *late]
            case 9:
                return self.group(size) + self.assistant(self.words(size))
            case 10:
                return [self.user(self.words(size * 10))]
            case _:
                return self.assistant(self.words(size), thinking=self.words(size))

    def _items(self, text: str, calls: Sequence[Call], thinking: str) -> list[bytes]:
        items: list[bytes] = []
        if thinking:
            summary = [{"type": "summary_text", "text": thinking}]
            items.append(self._raw({"type": "reasoning", "id": self._id("rs"), "summary": summary}))
        if text or not calls:
            content = [{"type": "output_text", "text": text}]
            items.append(
                self._raw({"type": "message", "id": self._id("msg"), "role": "assistant", "content": content})
            )
        for i, name, arguments in calls:
            said = {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(arguments)}
            items.append(self._raw(said | {"id": self._id("fc")}))
        return items

    def _id(self, kind: str) -> str:
        return f"{kind}_{self.random.randrange(1 << 60):x}"

    def _message(self, role: str, content: object, **members: object) -> bytes:
        message: dict[str, object] = {"role": role, "content": content, **members}
        if self.dialect == "openai-responses":
            message = {"type": "message", **message}
        if self.dialect == "openclaw":
            self._clock += self.random.randint(1, 90_000)
            message["timestamp"] = self._clock
        return self._raw(message)

    def _raw(self, message: dict[str, object]) -> bytes:
        """JSON as somebody else's encoder writes it."""
        if self.random.random() < 0.5:
            message = message | {"x_host": {"n": 1.50, "b": "\u00e9"}}
        separators = self.random.choice(((",", ":"), (", ", ": "), (" , ", ":  ")))
        text = json.dumps(message, ensure_ascii=self.random.random() < 0.3, separators=separators)
        return text.encode().replace(b"1.5", b"1.50") if b'"n"' not in text.encode() else text.encode()
