"""Evaluation sessions: messages, questions, and how much of a question's evidence a text holds."""

from __future__ import annotations

import gzip
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import error as DamagedArchive

import msgspec
from msgspec import Struct

from sidecar.cli.failures import CommandFailed

GROUNDING = "grounding"
"""Kind of question whose answer is a value that a tool is called with: the value itself is the evidence."""


ENOUGH = 0.5
"""Share of a message, by its length, that has to stand in a text word for word."""
TELLING = 12
"""Characters from which on a line says something by itself."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


class RecordedCall(Struct, frozen=True):
    """A call of a tool; `arguments` is the JSON text that the model wrote."""

    id: str
    name: str
    arguments: str = "{}"


class RecordedMessage(Struct, frozen=True):
    """One message of a session."""

    id: str | int
    role: str
    content: str | None = None
    ts: str | None = None
    """When it was written, if that is known; kept only where it is RFC 3339."""
    tool_calls: Sequence[RecordedCall] = ()
    tool_call_id: str | None = None

    @property
    def name(self) -> str:
        """The id as text."""
        return str(self.id)

    @property
    def text(self) -> str:
        """Everything that the message says, its calls included."""
        calls = [f"{call.name}({call.arguments})" for call in self.tool_calls]
        return "\n".join(part for part in (self.content or "", *calls) if part)

    def encoded(self) -> bytes:
        """The message in the form of Chat Completions."""
        body: dict[str, object] = {"role": self.role, "content": self.content or ""}
        if self.tool_calls:
            body["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            body["tool_call_id"] = self.tool_call_id
        return msgspec.json.encode(body)


class Question(Struct, frozen=True):
    """What is asked, and what the context should hold by then."""

    id: str | int
    type: str
    prompt: str
    evidence: Sequence[Sequence[str | int]]
    """Groups of message ids; of each group, any one will do."""
    answers: Sequence[str] = ()
    at: int | None = None
    """Asked behind the message of this index, from 0; `None` for the end."""

    @property
    def kind(self) -> str:
        """The type without its finer distinctions."""
        return self.type.partition(":")[0]


class EvaluationSession(Struct, frozen=True):
    """One session with its questions."""

    session_id: str
    messages: Sequence[RecordedMessage]
    questions: Sequence[Question] = ()

    def asked(self, limit: int | None) -> dict[int, list[Question]]:
        """The questions by the index of the message behind which they are asked.

        With `limit`, that many of them: the same ones everywhere, since a hash of their names chooses.
        """
        questions = list(self.questions)
        if limit is not None:
            questions = sorted(questions, key=self._draw)[:limit]
        found: dict[int, list[Question]] = {}
        for question in questions:
            at = len(self.messages) - 1 if question.at is None else question.at
            found.setdefault(at, []).append(question)
        return found

    def _draw(self, question: Question) -> bytes:
        return hashlib.sha256(f"{self.session_id}|{question.id}".encode("utf-8", "surrogatepass")).digest()


def read_sessions(path: Path) -> list[EvaluationSession]:
    """The sessions of a file of JSON lines, compressed by gzip where its name ends in `.gz`.

    Raises:
        CommandFailed: the file cannot be read, or a line is no evaluation session.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, DamagedArchive) as error:
        raise CommandFailed(f"{path.name} cannot be read: {error}") from None
    sessions: list[EvaluationSession] = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            sessions.append(_session(line, f"{path.name}, line {number}"))
    if not any(session.questions for session in sessions):
        raise CommandFailed(f"{path.name} has no questions; each line should be a session with `questions`")
    return sessions


def _session(line: bytes, place: str) -> EvaluationSession:
    try:
        session = msgspec.json.decode(line, type=EvaluationSession)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{place} is no evaluation session: {error}") from None
    known = {message.name for message in session.messages}
    for question in session.questions:
        strange = [str(id) for group in question.evidence for id in group if str(id) not in known]
        if strange:
            raise CommandFailed(
                f"{place}: question {question.id} names messages that are not there: {strange[:3]}"
            )
        if question.at is not None and not 0 <= question.at < len(session.messages):
            raise CommandFailed(f"{place}: question {question.id} is asked behind message {question.at}")
        if not question.evidence or (question.kind == GROUNDING and not question.answers):
            raise CommandFailed(f"{place}: question {question.id} has no evidence to look for")
    return session


class Found(NamedTuple):
    """What of one question's evidence and answers was found; shares from 0 to 1."""

    evidence: float
    complete: bool
    """True where every group of evidence was."""
    answers: float | None
    """`None` where the question names none."""
    held: int = 0
    """How many pieces of evidence were found."""
    wanted: int = 0
    """How many there are."""


def nothing_in(question: Question) -> Found:
    """What is found where there is nothing to look into."""
    wanted = 1 if question.kind == GROUNDING else len(question.evidence)
    return Found(0.0, complete=False, answers=0.0 if question.answers else None, wanted=wanted)


def normalized(text: str) -> str:
    """The text in one case, one form of its letters, and with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def share_in(message: str, where: str) -> float:
    """Share of the message's sentences and lines, by length, that stand in the normalized text `where`."""
    whole = normalized(message)
    if whole in where:
        return 1.0
    parts = [normalized(part) for part in _SENTENCE_END.split(message)]
    parts = [part for part in parts if len(part) >= TELLING] or [whole]
    return sum(len(part) for part in parts if part in where) / sum(map(len, parts))


def evidence_in(question: Question, texts: Mapping[str, str], where: str) -> Found:
    """What of a question's evidence stands in `where`; `texts` are the messages by their ids."""
    where = normalized(where)
    answers = [normalized(answer).strip(" .\"'") for answer in question.answers]
    held = [answer in where for answer in answers if answer]
    found = _groups(question, texts, where) if question.kind != GROUNDING else held[:1]
    return Found(_mean(found), all(found), _mean(held) if held else None, sum(found), len(found))


def evidence_among(
    question: Question, texts: Mapping[str, str], hits: Sequence[tuple[str | None, str]]
) -> float:
    """Share of the evidence among search hits, each the id of a message and the text that was shown."""
    where = normalized("\n".join(text for _, text in hits))
    if question.kind == GROUNDING:
        return float(normalized(question.answers[0]) in where)
    named = {id for id, _ in hits}
    groups = _groups(question, texts, where)
    return _mean(
        [
            held or any(str(id) in named for id in group)
            for held, group in zip(groups, question.evidence, strict=True)
        ]
    )


def _groups(question: Question, texts: Mapping[str, str], where: str) -> list[bool]:
    return [
        max((share_in(texts[str(id)], where) for id in group), default=0.0) >= ENOUGH
        for group in question.evidence
    ]


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0
