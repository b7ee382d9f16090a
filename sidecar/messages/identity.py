"""Fingerprints that identify a message after a host has processed it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from msgspec import structs

from sidecar.messages.contract import Dialect, IdentityKeys, MessageError, Reading
from sidecar.messages.fence import OPENING_BYTES, find, is_decoration, strip, undecorated
from sidecar.messages.text import fold, same_id

try:
    # `hashlib` would also load OpenSSL, which takes longer than most imports before the first answer.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_NONE = IdentityKeys(0, 0, 0)
_GROUP = "\x1d"
_FIELD = "\x1f"


def keys(reading: Reading) -> IdentityKeys:
    """The fingerprints of a message; a synthetic message has only that of the call it answers."""
    call = _call_key(reading)
    if reading.mark is not None:
        return IdentityKeys(call, 0, 0) if call else _NONE
    text = _hash(_said(reading))
    stamp = 0 if reading.timestamp_ms is None else _hash(f"{reading.timestamp_ms}{_GROUP}{text}")
    return IdentityKeys(call, stamp, text)


def leading_keys(reading: Reading, limit: int = 8) -> list[IdentityKeys]:
    """The fingerprints that beginnings of a message would have on their own.

    When a host merges a message into the previous one, these find the previous one by its part of the text.
    Tries cuts at the first `limit` line breaks, and after the first call or result.
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
    """Whether two messages with one id agree in role, text, calls, results and media."""
    if a.mark is not None or b.mark is not None:
        return a.mark == b.mark and fold(a.text) == fold(b.text)
    return _said(a) == _said(b)


def reuses_id(a: Reading, b: Reading) -> bool:
    """Whether two messages that share an inner id are in fact different messages.

    Some providers give responses short random ids that recur, or always the same id, so a reply at another
    time is another message. A user's message must also differ in text, because retrying hosts keep its key.
    """
    if a.timestamp_ms is None or b.timestamp_ms is None or a.timestamp_ms == b.timestamp_ms:
        return False
    return (a.role == b.role == "assistant") or not same_text(a, b)


def stub_refs(reading: Reading) -> list[str]:
    """The ids, without duplicates, of stored messages whose results or images are stubs in this one.

    `stands_in` checks whether it consists of them.
    """
    marks = [*reading.result_marks, *(part.mark for part in find(reading.text, reading.ours))]
    return list(dict.fromkeys(mark.ref for mark in marks if mark and mark.kind == "stub"))


def stands_in(reading: Reading, wholes: Sequence[Reading]) -> bool:
    """Whether a message has only content of `wholes` and stubs for their results or images."""
    said = _plain(reading.said)
    if said and said not in (_plain(whole.said) for whole in wholes):
        return False
    if not reading.result_marks:
        return any(whole.media for whole in wholes)
    kept = {same_id(result.call_id): _plain(result.text) for whole in wholes for result in whole.results}
    for result, mark in zip(reading.results, reading.result_marks, strict=True):
        text = kept.get(same_id(result.call_id))
        if text is None or (mark is None and text != _plain(result.text)):
            return False
    return True


def without_stubs(reading: Reading) -> Reading:
    """The reading with its stubs treated as ordinary text."""
    stubs = {
        reading.text[p.start : p.stop] for p in find(reading.text, reading.ours) if p.mark.kind == "stub"
    }
    return structs.replace(
        reading,
        mark=None,
        ours=reading.ours - stubs,
        result_marks=tuple(mark if mark and mark.kind != "stub" else None for mark in reading.result_marks),
    )


def size(reading: Reading) -> int:
    """Approximate characters of a message, which measure how distinctive it is."""
    calls = sum(len(call.name) + len(call.arguments) for call in reading.calls)
    return len(reading.text) + calls + sum(len(result.text) for result in reading.results)


def _said(reading: Reading) -> str:
    return _join(
        _role(reading),
        reading.said,
        [f"{call.name}{_FIELD}{_canonical(call.arguments)}" for call in reading.calls],
        reading.result_texts,
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
        from sidecar.messages.fence import undecorated

        text = undecorated(text)
    return fold(text)


def _canonical(arguments: str) -> str:
    """Arguments in a canonical form: hosts re-encode them, so key order and white space do not matter."""
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


def own_words(text: str, ours: Collection[str] = ()) -> str:
    """`text` without decorations added by hosts and without the parts in `ours`."""
    return undecorated(strip(text, ours)).strip()


def says(reading: Reading, prompt: str, ours: Collection[str] = ()) -> bool:
    """Whether this message is the user's `prompt`, ignoring the parts of the prompt in `ours`."""
    if fold(reading.text) == fold(prompt):
        return True
    return fold(own_words(reading.text, reading.ours)) == fold(own_words(prompt, ours))


def has_appendix(reading: Reading) -> bool:
    """Whether the only text of ours in a message is memory or recalled text after the user's words."""
    text = reading.text
    parts = find(text, reading.ours)
    if not parts or not text[: parts[0].start].strip():
        return False
    ends = [*(part.start for part in parts[1:]), len(text)]
    return all(
        part.mark.kind in ("memory", "recall") and is_decoration(text, part.stop, end)
        for part, end in zip(parts, ends, strict=True)
    )


def is_same_appended(dialect: Dialect, before: bytes, now: bytes) -> bool:
    """Whether `now` is the message `before` with an added appendix of ours."""
    if OPENING_BYTES not in now or OPENING_BYTES in before:
        return False
    try:
        reading, bare = dialect.read(now), dialect.read(before)
    except MessageError:
        return False
    return reading.role == "user" and has_appendix(reading) and same_text(bare, reading)
