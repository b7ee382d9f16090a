"""The tool `context_compact`: the model asks for room, and says what must stay in view."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct, json

from sidecar.tools.arguments import read_arguments
from sidecar.tools.context_status import own_context
from sidecar.tools.contract import ToolOutcome, ToolSession

MOST_KEPT = 4000
"""Characters of what is to stay in view."""

DESCRIPTION = """\
Makes room in this conversation: older messages are summed up or left out of what you are sent from the \
next step on. Nothing is lost, context_search finds all of it. Use it between two tasks, or before one that \
needs much room. `keep` is what must stay in view word for word: the task, what is decided, what is left to \
do, paths and ids that you need. It replaces what you asked to keep before; without it, that stays."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "keep": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_KEPT,
            "description": "What must stay in view from now on, word for word.",
        }
    },
}


class CompactArguments(Struct):
    """Arguments of the tool."""

    keep: Annotated[str, Meta(min_length=1, max_length=MOST_KEPT)] | None = None


class CompactContext:
    """Lets the engine of the session compact it."""

    name: ClassVar[str] = "context_compact"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)
    is_own: ClassVar[bool] = True

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, CompactArguments)
        done = await own_context(session).compact(given.keep)
        kept = " What you asked to keep is pinned." if given.keep else ""
        if isinstance(done, str):
            return ToolOutcome(f"There was no room to make: {done}.{kept}", json.encode({"compacted": False}))
        return ToolOutcome(
            f"Compacted from {done.tokens_before} to {done.tokens_after} tokens.{kept}",
            json.encode({"compacted": True, "result": done}),
        )
