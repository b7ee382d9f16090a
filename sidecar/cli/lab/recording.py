"""A recorded session, read and counted independently of the sidecar."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from sidecar.messages.contract import Dialect, Problem, Reading, Usage
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import load
from sidecar.messages.importers.transcript import Imported
from sidecar.protocol.base import MessageFormat
from sidecar.protocol.times import format_rfc3339
from sidecar.tokens.contract import TokenCounter

_VALUE = re.compile(r'"((?=[^"\\]*[\d/._-])[^"\\\s]{6,200})"(?!\s*:)')
"""A string in the JSON of arguments that is no name of a member."""
MESSAGE_OVERHEAD = 4
"""What the independent count adds for each message, in tokens."""
TOLERANCE_EXACT = 0.02
TOLERANCE_ESTIMATE = 0.10
STUB_TOKENS = 80
"""What a result may take at most in the smallest possible answer, in tokens."""


class Step(NamedTuple):
    """One message of the recording."""

    message: bytes
    message_id: str | None
    timestamp: str | None
    reading: Reading
    turn: int
    asks_model: bool
    """True where a runtime would have called the model right before this message."""
    usage: Usage | None
    """What the provider reported for it."""


class Tally:
    """Counts messages as a simple host would: role and delimiters, text, calls, results."""

    def __init__(self, dialect: Dialect, counter: TokenCounter) -> None:
        self.counter = counter
        self.tolerance = TOLERANCE_EXACT if counter.exact else TOLERANCE_ESTIMATE
        """Share of the budget by which this count may differ from the sidecar's."""
        self._dialect = dialect
        self._known: dict[bytes, tuple[Reading, int]] = {}

    def read(self, message: bytes) -> Reading:
        """What a message says."""
        return self._look(message)[0]

    def tokens(self, message: bytes) -> int:
        """What a message costs, in tokens."""
        return self._look(message)[1]

    def said(self, message: bytes) -> str:
        """The text, calls and results of a message."""
        return _said(self.read(message))

    def total(self, messages: Sequence[bytes], *additions: str | None) -> int:
        """What messages, and texts that are added to prompts, cost together, in tokens."""
        return sum(map(self.tokens, messages)) + sum(self.counter.count(text or "") for text in additions)

    def problems(self, messages: Sequence[bytes]) -> Sequence[Problem]:
        """What a provider would refuse."""
        return self._dialect.check([self.read(message) for message in messages])

    def _look(self, message: bytes) -> tuple[Reading, int]:
        found = self._known.get(message)
        if found is None:
            reading = self._dialect.read(message)
            found = self._known[message] = reading, MESSAGE_OVERHEAD + self.counter.count(_said(reading))
        return found


class Recording(NamedTuple):
    """A whole session."""

    name: str
    message_format: MessageFormat
    dialect: Dialect
    steps: list[Step]
    skipped: dict[str, int]


def read_recording(path: Path, format: str | None) -> Recording:
    """The session in a transcript file.

    Raises:
        TranscriptError: the file is no transcript of a known format.
        OSError: it cannot be read.
    """
    transcript = load(path, format)
    found = dialect(transcript.message_format)
    return Recording(
        path.name,
        cast("MessageFormat", transcript.message_format),
        found,
        steps_of(transcript.items, found.read),
        dict(transcript.skipped),
    )


class Evidence:
    """Tells which values calls take from earlier turns.

    A value is a string without blanks that has a digit or a mark of a path: what a model copies, not writes.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._earlier: list[str] = []
        self._recent: list[str] = []
        """The texts of the open turn."""
        self._known = set[str]()
        """Values that stand in `_earlier`."""

    def add(self, message: bytes) -> None:
        """Take in the next message."""
        if self._tally.read(message).opens_turn:
            self._earlier += self._recent
            self._recent = []
        self._recent.append(self._tally.said(message))

    def used(self, caller: Reading) -> list[str]:
        """Values in a message's calls whose newest mention is in an earlier turn."""
        values = {value for call in caller.calls for value in _VALUE.findall(call.arguments)}
        values -= {value for value in values if _stands(value, self._recent)}
        self._known |= {value for value in values - self._known if _stands(value, self._earlier)}
        return sorted(values & self._known)


def _stands(value: str, texts: Sequence[str]) -> bool:
    return any(value in text for text in reversed(texts))


class Prompt(NamedTuple):
    """Tokens of one prompt, and those of them with which the prompt before it began."""

    sent: int
    cached: int


def plain_prompts(sizes: Sequence[int], counts: Iterable[int], budget: int | None) -> list[Prompt]:
    """The prompts of a runtime without an engine, each after so many messages of these sizes.

    It sends everything, or within a budget the newest messages that fit, the last one in any case.
    """
    prompts: list[Prompt] = []
    start = end = tokens = 0
    for count in counts:
        before, begun = tokens, start
        tokens += sum(sizes[end:count])
        while budget is not None and tokens > budget and start < count - 1:
            tokens -= sizes[start]
            start += 1
        # A cache keeps a prefix: with the first message gone, nothing of it is left.
        prompts.append(Prompt(tokens, before if start == begun else 0))
        end = count
    return prompts


def smallest_answer(told: Sequence[bytes], tally: Tally) -> int:
    """Tokens of system messages, the newest user message, and the last calls after it with stubs."""
    readings = [tally.read(message) for message in told]
    opener = max((at for at, reading in enumerate(readings) if reading.opens_turn), default=-1)
    caller = max((at for at, reading in enumerate(readings) if reading.calls and at > opener), default=None)
    tokens = 0
    for at, reading in enumerate(readings):
        if reading.role == "system" or at == opener:
            tokens += tally.tokens(told[at])
        elif caller is not None and at >= caller:
            cost = tally.tokens(told[at])
            tokens += min(cost, STUB_TOKENS * len(reading.results)) if reading.results else cost
    return tokens


def steps_of(items: Sequence[Imported], read: Callable[[bytes], Reading]) -> list[Step]:
    """Messages as a runtime would have handed them over."""
    steps: list[Step] = []
    ids = Counter(item.message_id for item in items)
    turn, begun = 1, False
    for row, item in enumerate(items, 1):
        reading = read(item.message)
        if reading.opens_turn:
            turn += begun
            begun = True
        asks = begun and reading.role == "assistant" and steps[-1].reading.role != "assistant"
        steps.append(
            Step(
                item.message,
                item.message_id if item.message_id and ids[item.message_id] == 1 else f"row-{row}",
                format_rfc3339(item.timestamp_ms) if item.timestamp_ms is not None else None,
                reading,
                turn,
                asks,
                item.usage or reading.usage,
            )
        )
    return steps


def _said(reading: Reading) -> str:
    parts = [reading.text] if reading.text else []
    parts += [f"{call.name}({call.arguments})" for call in reading.calls]
    parts += [result.text for result in reading.results if result.text != reading.text]
    return "\n".join(parts)
