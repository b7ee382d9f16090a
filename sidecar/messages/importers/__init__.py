"""Imports complete transcripts that agent runtimes wrote to files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.importers.documents import FORMATS, detect
from sidecar.messages.importers.exports import conversations
from sidecar.messages.importers.foreign import LISTS
from sidecar.messages.importers.transcript import (
    Imported,
    Kept,
    Source,
    Span,
    Text,
    Transcript,
    TranscriptError,
)

__all__ = [
    "FORMATS",
    "Imported",
    "Source",
    "Span",
    "Text",
    "Transcript",
    "TranscriptError",
    "conversations",
    "detect",
    "load",
    "read",
]


# One program's files may be taken for another's: text without calls is the same in all of these lists.
_ALIKE = ({"openai-chat", "anthropic-messages", "ai-sdk", "langchain"}, {"pi", "openclaw"})


def load(path: str | Path, format: str | None = None) -> Transcript:
    """The conversation in a file; if no format is named, it is detected.

    Rows outside the conversation and damaged lines are counted in `skipped`.

    Raises:
        TranscriptError: the file's format is unknown, or not the named one.
        OSError: the file cannot be read.
    """
    if format in FORMATS:
        _refuse_others(Path(path), format)
    return read(Path(path), format)


def _refuse_others(source: Source, format: str) -> None:
    try:
        found = detect(source)
    except TranscriptError:
        return
    if found != format and not any({found, format} <= alike for alike in _ALIKE):
        raise TranscriptError(f"the file is of the format {found}, not {format}; name that one, or none")


def read(source: Source, format: str | None = None) -> Transcript:
    """The conversation of a source, as in `load`.

    Raises:
        TranscriptError: as for `load`.
    """
    name = detect(source) if format is None else format
    if name not in FORMATS:
        raise TranscriptError(f"unknown transcript format {name!r}; known are {', '.join(FORMATS)}")
    transcript = _importer(name)(source)
    _leave_out_unreadable(transcript, source.kept if isinstance(source, Text) else None)
    if not transcript.items and not transcript.skipped:
        raise TranscriptError(f"the file is not a {name} transcript")
    return transcript


def _leave_out_unreadable(transcript: Transcript, kept: Kept | None) -> None:
    glance = dialect(transcript.message_format).glance
    key = ("glance", transcript.message_format)
    sound: list[Imported] = []
    for item in transcript.items:
        message = item.message
        try:
            if kept is None:
                glance(message)
            else:
                kept.once(key, message, partial(glance, message))
        except MessageError:
            transcript.skip("invalid message")
        else:
            sound.append(item)
    transcript.items = sound


def _importer(name: str) -> Callable[[Source], Transcript]:
    if name == "claude-code":
        from sidecar.messages.importers.claude_code import load as importer
    elif name == "codex":
        from sidecar.messages.importers.codex import load as importer
    elif name in ("pi", "openclaw"):
        from sidecar.messages.importers.pi import load as importer
    elif name == "anthropic-messages":
        from sidecar.messages.importers.documents import load_anthropic as importer
    elif name == "swe-agent":
        from sidecar.messages.importers.documents import load_trajectory as importer
    elif name in ("kimi", "aider"):
        from sidecar.messages.importers import foreign

        importer = foreign.kimi if name == "kimi" else foreign.aider
    elif name in ("chatgpt", "claude-ai"):
        from sidecar.messages.importers import exports

        importer = exports.chatgpt if name == "chatgpt" else exports.claude_ai
    elif name in LISTS:
        from sidecar.messages.importers.documents import load_foreign

        importer = partial(load_foreign, name=name)
    else:
        from sidecar.messages.importers.documents import load_chat as importer
    return importer
