"""Shared parts of the dialects: token usage, inline payloads, and edits that differ only in names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import Media, Placement, Problem, Reading, Usage
from sidecar.messages.dialects.decoding import items, json_text, members, with_items, with_members
from sidecar.messages.marks import Marking

_LAST_MOMENT = 8_640_000_000_000_000
_LONGEST_SENDER = 40


class JsonDialect(Marking):
    """A dialect whose messages have a `content` of typed parts."""

    name: str
    texts: ClassVar[frozenset[str]] = frozenset(("text",))
    """Part types with visible text."""
    images: ClassVar[frozenset[str]] = frozenset(("image",))
    """Part types of images."""
    note: ClassVar[str] = "text"
    """Type of the part that replaces an image."""

    def replace_images(self, raw: bytes, text: str) -> bytes:
        """As `Dialect.replace_images`."""
        message = members(raw)
        content = None if message is None else message.get("content")
        parts = None if content is None else items(bytes(content))
        if parts is None:
            return raw
        note = Raw(msgspec.json.encode({"type": self.note, "text": text}))
        changed = [note if _type(bytes(part)) in self.images else part for part in parts]
        return with_members(raw, {"content": with_items(changed)})

    def change_texts(self, raw: bytes, change: Callable[[list[str]], Sequence[str]]) -> bytes:
        """As `Dialect.change_texts`."""
        from sidecar.messages.dialects.texts import change_texts

        return change_texts(raw, self.texts, change)

    def arrange(self, readings: Sequence[Reading], *, cut: bool = False) -> list[Placement]:
        """As `Dialect.arrange`."""
        from sidecar.messages.validity import RULES, arrange

        return arrange(readings, RULES[self.name], cut=cut)

    def check(self, readings: Sequence[Reading]) -> list[Problem]:
        """As `Dialect.check`."""
        from sidecar.messages.validity import CHECKS

        return CHECKS[self.name](readings)


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class UsageMembers(Struct):
    """Token counts under the names used by OpenAI, Anthropic and pi."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    input: int | None = None
    output: int | None = None
    cacheRead: int | None = None
    cacheWrite: int | None = None
    cached_input_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    input_tokens_details: _PromptDetails | None = None

    def total(self) -> Usage | None:
        """The tokens of the prompt, including cached ones, and of the answer; `None` if there are none."""
        prompted = _first(self.prompt_tokens, self.input_tokens, self.input)
        answered = _first(self.completion_tokens, self.output_tokens, self.output)
        if prompted is None and answered is None:
            return None
        # Anthropic and pi report cached tokens separately from the input, OpenAI and Codex include them.
        read = _first(self.cache_read_input_tokens, self.cacheRead) or 0
        written = _first(self.cache_creation_input_tokens, self.cacheWrite) or 0
        prompt = (prompted or 0) + read + written
        if details := self.prompt_tokens_details or self.input_tokens_details:
            read = details.cached_tokens or 0
        elif self.cached_input_tokens is not None:
            read = self.cached_input_tokens
        return Usage(prompt, answered or 0, read, written)


def inline_media(kind: Literal["image", "audio", "video", "file"], base64: str | None) -> Media:
    """A media part with its payload as base64 text or a `data:` URL; without one, a reference."""
    if not base64:
        return Media(kind, 0)
    if base64.startswith("data:"):
        return Media(kind, payload_size(base64.partition(",")[2]))
    return Media(kind, payload_size(base64))


def linked_media(kind: Literal["image", "audio", "video", "file"], url: str | None) -> Media:
    """A media part given by URL; only a `data:` URL has a known size."""
    return inline_media(kind, url) if url and url.startswith("data:") else Media(kind, 0)


def media_kind(mime_type: str | None) -> Literal["image", "audio", "video", "file"]:
    """The kind of medium of a MIME type."""
    major = (mime_type or "").partition("/")[0]
    if major == "image" or major == "audio" or major == "video":
        return major
    return "file"


def milliseconds(stamp: int | float | None) -> int | None:
    """A timestamp in milliseconds; `None` if it is outside the range of dates."""
    return None if stamp is None or not 0 <= stamp <= _LAST_MOMENT else int(stamp)


def payload_size(base64: str) -> int:
    """The number of bytes that base64 text encodes."""
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def sender_name(*candidates: str | None) -> str:
    """The first non-blank candidate, without characters that could imitate a role, a turn or a line."""
    for candidate in candidates:
        letters = "".join(c if c.isalnum() or c in "-_.@'" else " " for c in candidate or "")
        if name := " ".join(letters.split())[:_LONGEST_SENDER].strip():
            return name
    return ""


def _type(part: bytes) -> str:
    found = members(part) if part[:1] == b"{" else None
    return "" if found is None else json_text(found.get("type"))
