"""Lets a spawned session read its parent's history, within bounds, until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError, Raw, json

from sidecar.store.stored import SessionHead
from sidecar.store.writes import SaveState

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

SPENT = "granted"
PARENT = "parent"
OF: dict[str, object] = {
    "type": "string",
    "enum": [PARENT],
    "description": "Look into the conversation that started this one instead, as far as that is granted.",
}
"""The argument by which a child asks for its parent's history."""


class Grant(NamedTuple):
    """What a child may read of its parent."""

    parent: SessionHead
    tokens: int
    """Tokens that it may be shown in all."""
    spent: int

    @property
    def left(self) -> int:
        """Tokens that it may still be shown."""
        return max(self.tokens - self.spent, 0)


async def grant_of(sidecar: Sidecar, child: SessionHead) -> Grant | None:
    """The grant of a session, `None` where it was not spawned, has ended, or may read nothing."""
    spawn = await sidecar.store.spawn_of(child.ref)
    if spawn is None or spawn.mode != "isolated" or spawn.parent_id is None:
        return None
    parent = await sidecar.store.session(sidecar.ref(spawn.parent_id))
    if parent is None:
        return None
    tokens = (await sidecar.seats.of(spawn.parent_id, parent.agent_id)).engine.grant_tokens
    if not tokens:
        return None
    kept = await sidecar.store.state(child.ref, SPENT)
    name, spent = json.decode(kept, type=tuple[str, int]) if kept else ("", 0)
    return Grant(parent, tokens, spent if name == spawn.preparation_id else 0)


async def spend(sidecar: Sidecar, child: SessionHead, grant: Grant, text: str) -> bool:
    """Take what is about to be shown off the grant, durably; false where it is more than is left."""
    tokens = sidecar.counter.count(text)
    spawn = await sidecar.store.spawn_of(child.ref)
    if spawn is None or tokens > grant.left:
        return False
    value = json.encode((spawn.preparation_id, grant.spent + tokens))
    await sidecar.store.write(SaveState(child.ref, SPENT, value))
    return True


def wants_parent(arguments: bytes) -> bytes | None:
    """The other arguments where `of` asks for the parent, else `None`."""
    try:
        given = json.decode(arguments, type=dict[str, Raw])
        if bytes(given.pop("of", Raw(b"null"))).strip() != b'"parent"':
            return None
        return json.encode(given)
    except DecodeError:
        return None


def with_of(schema: bytes) -> bytes:
    """A tool's schema with the argument by which a child asks for its parent's history."""
    members: dict[str, Any] = json.decode(schema)
    return json.encode({**members, "properties": {**members["properties"], "of": OF}})
