"""Reads evaluation sessions: messages, with questions and the messages that hold their answers."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from zlib import error as DamagedArchive

import msgspec
from msgspec import Struct

from sidecar.cli.failures import CommandFailed

GROUNDING = "grounding"
"""Kind of question whose answer is a value that a tool is called with: the value itself is the evidence."""


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
