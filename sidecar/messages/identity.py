"""Fingerprints by which a message is known again after a host has handled it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sidecar.messages.contract import IdentityKeys, Reading
from sidecar.messages.fence import strip, stub_ref
from sidecar.messages.folding import fold, same_id

try:
    # `hashlib` would load OpenSSL too, which takes longer than most imports of the first answer.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_NONE = IdentityKeys(0, 0, 0)
_GROUP = "\x1d"
_FIELD = "\x1f"


def keys(reading: Reading) -> IdentityKeys:
    """The fingerprints of a message; synthetic messages have none but that of the call they answer."""
    call = _call_key(reading)
    if reading.mark is not None:
        return IdentityKeys(call, 0, 0) if call else _NONE
    text = _hash(_said(reading))
    stamp = 0 if reading.timestamp_ms is None else _hash(f"{reading.timestamp_ms}{_GROUP}{text}")
    return IdentityKeys(call, stamp, text)


def leading_keys(reading: Reading, limit: int = 8) -> list[IdentityKeys]:
    """The fingerprints that the beginning of a message would have on its own.

    Hosts merge a message into the one before it; the message before it is then found by its part of the
    text. Cuts are tried at the first `limit` line breaks, and behind the first call or result.
    """
    if reading.mark is not None:
        return []
    found: list[IdentityKeys] = []
    role = _role(reading)
    for text in _beginnings(reading.text, limit):
        found.append(IdentityKeys(0, 0, _hash(_join(role, text, (), (), ()))))
    sides = (
        ("c", [call.id for call in reading.calls]),
        ("r", [result.call_id for result in reading.results]),
    )
    for side, ids in sides:
        if len(ids) > 1:
            found.append(IdentityKeys(_ids_key(side, ids[:1]), 0, 0))
    return found


def same_text(a: Reading, b: Reading) -> bool:
    """Whether two messages of one id say the same: role, text, calls, results and media."""
    if a.mark is not None or b.mark is not None:
        return a.mark == b.mark and fold(a.text) == fold(b.text)
    return _said(a) == _said(b)


def reuses_id(a: Reading, b: Reading) -> bool:
    """Whether two messages with one inner id are two messages after all.

    Some providers give responses short random ids that come up again, or the same one always: a reply at
    another time is then another message. A user's message has to say something else too, since hosts that try
    again keep its key.
    """
    if a.timestamp_ms is None or b.timestamp_ms is None or a.timestamp_ms == b.timestamp_ms:
        return False
    return (a.role == b.role == "assistant") or not same_text(a, b)


def stands_for(reading: Reading) -> str | None:
    """The `messageId` of the stored message whose results, some or all, are stubs in this one."""
    if reading.mark is not None:
        return reading.mark.ref if reading.mark.kind == "stub" else None
    for text in (reading.text, *(result.text for result in reading.results)):
        ref = stub_ref(text)
        if ref is not None:
            return ref
    return None


def size(reading: Reading) -> int:
    """Roughly how many characters a message says: what makes its text telling."""
    calls = sum(len(call.name) + len(call.arguments) for call in reading.calls)
    return len(reading.text) + calls + sum(len(result.text) for result in reading.results)


def _said(reading: Reading) -> str:
    return _join(
        _role(reading),
        reading.text,
        [f"{call.name}{_FIELD}{_canonical(call.arguments)}" for call in reading.calls],
        [result.text for result in reading.results],
        [f"{medium.kind}{_FIELD}{medium.size}" for medium in reading.media],
    )


def _join(role: str, text: str, calls: Sequence[str], results: Sequence[str], media: Sequence[str]) -> str:
    parts = [role, _plain(text)]
    parts += [f"c{call}" for call in calls]
    parts += [f"r{_plain(result)}" for result in results]
    parts += [f"m{medium}" for medium in media]
    return _GROUP.join(parts)


def _role(reading: Reading) -> str:
    return reading.wire_role if reading.role == "other" else reading.role


def _plain(text: str) -> str:
    if "[" in text or "Runtime:" in text:
        from sidecar.messages.decorations import undecorated

        text = strip(undecorated(text))
    return fold(text)


def _canonical(arguments: str) -> str:
    """Hosts re-encode arguments: order of keys and white space do not count."""
    if arguments in ("", "{}"):
        return arguments
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return fold(arguments)


def _beginnings(text: str, limit: int) -> list[str]:
    found: list[str] = []
    end = text.find("\n")
    while end >= 0 and len(found) < limit:
        if text[:end].strip():
            found.append(text[:end])
        end = text.find("\n", end + 1)
    return found


def _call_key(reading: Reading) -> int:
    if reading.calls:
        return _ids_key("c", [call.id for call in reading.calls])
    if reading.results:
        return _ids_key("r", [result.call_id for result in reading.results])
    return 0


def _ids_key(side: str, ids: Sequence[str]) -> int:
    if not any(ids):
        return 0
    return _hash(_GROUP.join([side, *map(same_id, ids)]))


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1
