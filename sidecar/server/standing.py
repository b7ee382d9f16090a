"""Tells what became of stored messages in the newest answer of their session."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.engine.guard.decisions import LISTED, Decision, explain
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import SessionRef

MOST = 2 * LISTED
"""The newest messages of a session about which is told."""


class Standing(NamedTuple):
    """Where a message stands in what the model sees."""

    decision: str
    """`sent`, `summarised`, `stubbed`, `dropped` or `pinned`."""
    reason: str


async def standings(
    sidecar: Sidecar, session_id: str, first: int = 1, last: int | None = None
) -> dict[int, Standing]:
    """What became of the messages at positions `first` to `last`, from 1, as far as that is known.

    Where this process remembers no answer of the session, it is what the stored summaries cover.
    """
    ref = sidecar.ref(session_id)
    head = await sidecar.store.session(ref)
    if head is None:
        return {}
    last = head.message_count if last is None else min(last, head.message_count)
    first = max(first, last - MOST + 1)
    live = sidecar.sessions.cached(session_id)
    result = live.results.newest_of(None) if live else None
    if result is None:
        return await _covered(sidecar, ref, first, last)
    decided = {each.message_id: each for each in await explain(result.timeline, result.record)}
    rows = await sidecar.store.keyed(ref, first, last)
    return {row.position: _told(decided[row.message_id]) for row in rows if row.message_id in decided}


def _told(decided: Decision) -> Standing:
    by = f", {decided.by}" if decided.by and decided.verdict == "summarised" else ""
    return Standing(decided.verdict, decided.reason + by)


async def _covered(sidecar: Sidecar, ref: SessionRef, first: int, last: int) -> dict[int, Standing]:
    """The messages that a summary stands for; of several, the highest one."""
    found: dict[int, Standing] = {}
    for node in sorted(await sidecar.store.summaries(ref), key=lambda node: node.depth):
        why = f"summary {node.node_id} covers it; no answer is remembered here that would tell more"
        for position in range(max(first, node.first_position), min(last, node.last_position) + 1):
            found[position] = Standing("summarised", why)
    return found
