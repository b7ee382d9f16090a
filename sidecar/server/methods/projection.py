"""An answer as texts, for a backend that keeps its own thread and takes no list of messages."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports of the first answer together.
from _blake2 import blake2b
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sidecar.engine.guard.slot import Slot
from sidecar.messages import fence
from sidecar.messages.contract import Mark, Reading, ToolCall
from sidecar.protocol.assemble import ContextProjection

HISTORY = "The conversation so far. It is a record to refer to, not a request:"
SINCE = "What has been done for this request so far:"

Wrap = Callable[[Mark, str], str]
"""Puts a text of ours into its fence."""

_OWN_MARKS = (Mark("note", "history"), Mark("note", "turn"))
_SPEAKERS = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool", "other": "other"}


class Thread(NamedTuple):
    """What a thread of the backend is named after."""

    session_id: str
    name: str
    """Another one for a session that was deleted and made anew."""
    epoch: int
    """The context epoch at which the answers of the view began to extend each other."""


def project(
    slots: Sequence[Slot],
    thread: Thread,
    *,
    prompt: str | None,
    addition: str | None,
    append: str | None,
    wrap: Wrap,
) -> ContextProjection:
    """The answer in `slots` as developer instructions and one text of the user.

    `prompt` is this turn's text where no message of the answer has it. The epoch changes where a thread of
    the backend lacks something that only we have: a new context epoch, another instruction, a text of ours.
    """
    system = [slot.reading.text for slot in slots if slot.kind == "system"]
    instructions = "\n\n".join(text for text in (*system, addition) if text)
    talk = [slot for slot in slots if slot.kind != "system"]
    at = len(talk) if prompt else _open_turn(talk)
    said = prompt or (_said(talk[at].reading) if at < len(talk) else "")
    parts = (
        _data(wrap, _OWN_MARKS[0], HISTORY, talk[:at]),
        _data(wrap, _OWN_MARKS[1], SINCE, talk[at + 1 :]),
        said,
        append,
    )
    text = "\n\n".join(part for part in parts if part)
    made = [slot.reading.text for slot in talk if slot.made]
    return ContextProjection(
        mode="thread_bootstrap",
        epoch=f"{_hash((thread.session_id, thread.name, instructions, *made))}-{thread.epoch}",
        fingerprint=_hash((instructions, text)),
        developer_instructions=instructions,
        prompt=text,
    )


def project_turn(slots: Sequence[Slot], thread: Thread, *, prompt: str | None) -> ContextProjection:
    """This turn's text alone, for an engine that leaves the history to the host and so to its thread."""
    at = _open_turn(slots)
    text = prompt or (_said(slots[at].reading) if at < len(slots) else "")
    return ContextProjection(
        mode="per_turn",
        epoch=f"{_hash((thread.session_id, thread.name))}-0",
        fingerprint=_hash(("", text)),
        developer_instructions="",
        prompt=text,
    )


def _open_turn(talk: Sequence[Slot]) -> int:
    """Where the newest turn begins."""
    for index in range(len(talk) - 1, -1, -1):
        entry = talk[index].entry
        if entry is not None and entry.opens_turn:
            return index
    return len(talk)


def _data(wrap: Wrap, mark: Mark, heading: str, slots: Sequence[Slot]) -> str:
    """Messages as fenced text, which nobody takes for the user's own words when it comes back."""
    if not slots:
        return ""
    names = {call.id: call.name for slot in slots for call in slot.reading.calls}
    lines = [line for slot in slots for line in _lines(slot.reading, names)]
    return wrap(mark, "\n".join([heading, *lines]))


def _lines(reading: Reading, names: dict[str, str]) -> Iterable[str]:
    for at, result in enumerate(reading.results):
        name = result.name or names.get(result.call_id) or "tool"
        yield f"[tool] {name}: {_answered(reading, at)}"
    pieces = [_said(reading), *map(_call, reading.calls)]
    if text := " ".join(piece for piece in pieces if piece):
        yield f"[{_SPEAKERS[reading.role]}] {text}"


def _said(reading: Reading) -> str:
    media = [f"[{medium.kind}]" for medium in reading.media]
    text = reading.text if reading.mark is not None else _without_projection(reading)
    return " ".join(piece for piece in (fence.opened(text, reading.ours), *media) if piece)


def _answered(reading: Reading, at: int) -> str:
    """What a tool said, or what stands in for it, without the fence."""
    text = reading.results[at].text
    return fence.opened(text, [text.strip()]) if reading.result_marks and reading.result_marks[at] else text


def _without_projection(reading: Reading) -> str:
    """What a user said without an earlier projection that the host has stored with it."""
    text = reading.text
    for part in reversed(fence.find(text, reading.ours)):
        if part.mark in _OWN_MARKS:
            text = text[: part.start].rstrip() + text[part.stop :]
    return text.strip()


def _call(call: ToolCall) -> str:
    return f"[tool: {call.name}({call.arguments or '{}'})]"


def _hash(texts: Iterable[str]) -> str:
    known = blake2b(digest_size=12)
    for text in texts:
        body = text.encode("utf-8", "surrogatepass")
        known.update(len(body).to_bytes(8, "big"))
        known.update(body)
    return known.hexdigest()
