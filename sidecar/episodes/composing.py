"""Makes an episode of the messages of a turn."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports of the first answer together.
from _blake2 import blake2b
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import json

from sidecar.episodes.contract import EpisodeMessage, EpisodePayload
from sidecar.messages.contract import Dialect, MessageError
from sidecar.messages.excerpt import plain_text
from sidecar.store.stored import SessionHead, StoredMessage

VERSION = 1
LONGEST_TEXT = 16_000
"""Characters of one message that are handed over; the store has all of it."""
LONGEST_EPISODE = 400_000
"""Characters of one episode, about."""


NAMELESS = "default"
"""The agent of sessions whose host names none, as memory sources know it."""


def compose(head: SessionHead, messages: Sequence[StoredMessage], dialect: Dialect) -> bytes | None:
    """The payload for consecutive messages of one turn; `None` where they say nothing."""
    told: list[EpisodeMessage] = []
    room = LONGEST_EPISODE
    for message in messages:
        if message.heartbeat or message.role == "system":
            continue
        try:
            reading = dialect.read(message.body)
        except MessageError:
            continue
        text = "" if reading.mark is not None else _sound(plain_text(reading))
        if not text:
            continue
        text = _cut(text, max(min(LONGEST_TEXT, room), 200))
        room -= len(text)
        told.append(
            EpisodeMessage(
                message_id=_sound(message.message_id),
                role=message.role,
                timestamp=_rfc3339(message.timestamp_ms),
                text=text,
            )
        )
    if not told:
        return None
    first, last = messages[0], messages[-1]
    payload = EpisodePayload(
        key=_key(head, first, last),
        type="episode",
        version=VERSION,
        namespace=_sound(head.ref.namespace),
        session_id=_sound(head.ref.session_id),
        session_key=_sound(head.session_key) if head.session_key else None,
        agent_id=_sound(head.agent_id or NAMELESS),
        turn_id=_sound(first.turn_id),
        started_at=told[0].timestamp,
        ended_at=told[-1].timestamp,
        messages=told,
    )
    return json.encode(payload)


def _key(head: SessionHead, first: StoredMessage, last: StoredMessage) -> str:
    parts = (*head.ref, str(head.created_ms), first.turn_id, first.message_id, last.message_id)
    text = "\0".join(parts)
    return "ep_" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]}\n[... {len(text) - most} characters left out ...]\n{text[-most // 4 :]}"


def _sound(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON in UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _rfc3339(ms: int) -> str:
    try:
        instant = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        instant = datetime.fromtimestamp(0, UTC)
    return f"{instant.isoformat(timespec='milliseconds')[:-6]}Z"
