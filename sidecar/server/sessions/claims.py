"""Which stored messages belong to turns that were committed, so that no later turn is taken for them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.messages.contract import IdentityKeys, Reading
from sidecar.messages.folding import same_id
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.transcript import WINDOW, HostMessage
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import SaveState

CLAIMED = "claimed"

_COUNTED = re.compile(r"[A-Za-z]*[0-9]{0,4}")
"""Ids that a provider may use again in every turn, such as `call_1`."""


async def claimed(live: LiveSession) -> int:
    """The position of the newest message of a committed turn, 0 where there is none."""
    kept = await live.state(CLAIMED)
    if kept is None or live.head is None:
        return 0
    entry = await live.stored.find(_message_id(kept))
    return entry.place if entry else min(int(kept.partition(b" ")[0]), live.head.message_count)


async def claim(live: LiveSession) -> None:
    """Note that everything stored by now belongs to a committed turn."""
    head = live.head
    if head is None or not head.message_count:
        return
    newest = (await live.stored.up_to(head.message_count, head.message_count))[-1]
    await live.save_state(CLAIMED, _value(head, newest.message_id))


async def claim_anew(store: SessionStore, ref: SessionRef) -> None:
    """Where the newest message of a committed turn is gone, note that all that are left belong to one."""
    kept, head = await store.state(ref, CLAIMED), await store.session(ref)
    if kept is None or head is None or await store.message(ref, _message_id(kept)):
        return
    newest = await store.messages(ref, head.message_count, head.message_count)
    await store.write(SaveState(ref, CLAIMED, _value(head, newest[0].message_id) if newest else None))


async def known_of_earlier_turns(
    live: LiveSession, messages: Sequence[HostMessage], found: list[Entry | None], earlier: int
) -> None:
    """Complete `found` by messages up to position `earlier` that more than their text identifies."""
    missing = [i for i, entry in enumerate(found) if entry is None and _identified(messages[i])]
    if not missing:
        return
    first = max(1, earlier - 2 * len(messages) - WINDOW + 1)
    known: dict[object, Entry] = {}
    for entry in await live.stored.up_to(earlier, first):
        for name in (("id", entry.message_id), *_names(entry.reading, entry.keys)):
            known[name] = entry
    for i in missing:
        message = messages[i]
        for name in (*_names(message.reading, message.keys), *_stub_names(message)):
            if name in known:
                found[i] = known[name]
                break


def _identified(message: HostMessage) -> bool:
    return message.fenced or bool(_names(message.reading, message.keys))


def _names(reading: Reading, keys: IdentityKeys) -> list[object]:
    """By what a message is known apart from its text, the surest first."""
    names: list[object] = []
    if reading.inner_id:
        names.append(("inner", reading.inner_id))
    if keys.call and not any(_COUNTED.fullmatch(same_id(id)) for id in _call_ids(reading)):
        names.append(("call", keys.call))
    if keys.stamp:
        names.append(("stamp", keys.stamp))
    return names


def _stub_names(message: HostMessage) -> list[object]:
    return [("id", message.stub_of)] if message.stub_of else []


def _call_ids(reading: Reading) -> list[str]:
    return [call.id for call in reading.calls] or [result.call_id for result in reading.results]


def _value(head: SessionHead, message_id: str) -> bytes:
    return f"{head.message_count} {message_id}".encode("utf-8", "surrogatepass")


def _message_id(value: bytes) -> str:
    return value.partition(b" ")[2].decode("utf-8", "surrogatepass")
