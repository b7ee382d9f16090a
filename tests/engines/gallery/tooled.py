"""An engine with tools of its own, one of which is broken in many ways."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from msgspec import json

from sidecar.engine import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Kept,
    Session,
    StoringEngine,
)
from sidecar.store.search import SearchQuery
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolOutcome, ToolSession


class Look:
    """Tells what a tool can read."""

    name = "look"
    description = "Looks at the session in every way there is."
    input_schema = b'{"type": "object", "properties": {"word": {"type": "string"}}}'

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """What each way of reading gives."""
        word = json.decode(arguments).get("word", "sum")
        ref, store = session.head.ref, session.store
        messages = await session.read(1, 1000)
        first = await store.message(ref, messages[0].message_id)
        hits = (await store.search(ref, SearchQuery(text=word, kind="literal"))).hits
        found = (await session.find(SearchQuery(text=word, kind="literal"))).hits
        seen: dict[str, Any] = {
            "count": len(messages),
            "same": first == messages[0] and await store.message(ref, "nobody") is None,
            "turn": await store.turn_start(ref, 2),
            "hits": [hit.position for hit in hits],
            "found": len(found),
            "summaries": len(await store.summaries(ref)) + len(await store.summary_nodes(ref, ["x"])),
            "read": session.dialect.read(messages[0].body).text,
        }
        return ToolOutcome(f"{len(messages)} messages", json.encode(seen))


class Broken:
    """Misbehaves as it is asked to."""

    name = "broken"
    description = "Fails."
    input_schema = b'{"type": "object"}'

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """Trouble of the kind that `how` names."""
        how = json.decode(arguments).get("how")
        match how:
            case "argument":
                raise ArgumentError("must be something else", "how")
            case "failed":
                raise ToolFailed("Ask for something else.")
            case "query":
                await session.find(SearchQuery(text="(", kind="regex"))
            case "hangs":
                await asyncio.Event().wait()
            case "exits":
                os._exit(3)
            case "none":
                return cast(ToolOutcome, None)
            case "long":
                return ToolOutcome("word " * 100_000)
            case "structured":
                return ToolOutcome("x", b"{no JSON")
            case _:
                raise ValueError("no such thing")
        return ToolOutcome("")


class Tooled(StoringEngine):
    """Sends everything."""

    info = EngineInfo(id="tooled", name="Tooled", version="1")
    tools: ClassVar[Mapping[str, str]] = {
        **StoringEngine.tools,
        "look": "tooled:Look",
        "broken": "tooled:Broken",
    }

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """All that fits."""
        entries = (await session.timeline.tail(request.budget)).entries
        return Assembly(items=[Kept(entry) for entry in entries])

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Nothing to do."""
        return CompactOutcome(compacted=False, reason="there is nothing to do")
