"""Puts text in the place of the images of a message; everything else keeps its bytes."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from sidecar.messages.dialects.decoding import json_text
from sidecar.messages.dialects.splicing import items, members, with_items, with_members


def replace_images(raw: bytes, kinds: frozenset[str], text_type: str, text: str) -> bytes:
    """The message with each part of `content` that is of these types replaced by a part with `text`."""
    message = members(raw)
    content = None if message is None else message.get("content")
    parts = None if content is None else items(bytes(content))
    if parts is None:
        return raw
    note = Raw(msgspec.json.encode({"type": text_type, "text": text}))
    changed = [note if _type(bytes(part)) in kinds else part for part in parts]
    return with_members(raw, {"content": with_items(changed)})


def _type(part: bytes) -> str:
    found = members(part) if part[:1] == b"{" else None
    return "" if found is None else json_text(found.get("type"))
