"""Puts injected memory into an engine's answer: into the texts beside the list, or into the list itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from sidecar.engine.calls import Assembly, Kept, Made
from sidecar.memory.framing import framed, mark_of
from sidecar.memory.record import Injection


def beside(assembly: Assembly, start: str, turn: str) -> Assembly:
    """The answer with texts behind its own additions to the system prompt and to the user's message."""
    return structs.replace(
        assembly,
        system_prompt_addition=_joined(assembly.system_prompt_addition, start),
        user_message_append=_joined(assembly.user_message_append, turn),
    )


def inside(assembly: Assembly, placed: Mapping[int, Injection], current: int) -> Assembly:
    """The answer with a message in front of the opener of each turn that was given memory.

    That of the `current` turn comes last where the host is going to add the opener itself.
    """
    items: list[Kept | Made] = []
    waiting = dict(placed)
    for item in assembly.items:
        if isinstance(item, Kept) and item.entry.turn in waiting and item.entry.opens_turn:
            items.append(_made(waiting.pop(item.entry.turn)))
        items.append(item)
    if current in waiting:
        items.append(_made(waiting[current]))
    return structs.replace(assembly, items=items)


def framed_injection(injection: Injection | None) -> str:
    """What was injected, within its fence; empty where there is nothing."""
    return framed(injection.name, injection.body) if injection else ""


def placed_turns(items: Sequence[Made], placed: Mapping[int, Injection]) -> set[int]:
    """The turns whose memory is among these messages."""
    refs = {item.ref for item in items if item.kind == "memory"}
    return {turn for turn, i in placed.items() if mark_of(i.name, i.body).ref in refs}


def _made(injection: Injection) -> Made:
    return Made(
        role="user",
        kind="memory",
        ref=mark_of(injection.name, injection.body).ref,
        text=injection.body,
        timestamp_ms=injection.compiled_ms,
        lasting=True,
    )


def _joined(first: str | None, second: str) -> str | None:
    return "\n\n".join(text for text in (first, second) if text) or None
