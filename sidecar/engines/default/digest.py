"""The one summary that stands for everything before the window."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, json

from sidecar.engine.contract import Made, Session
from sidecar.engine.entry import Entry
from sidecar.messages.excerpt import plain_text
from sidecar.summarize.contract import SourceMessage, Summariser, SummaryRequest

STATE = "digest"


class Digest(Struct, frozen=True, kw_only=True):
    """Where the window begins, and what stands for the messages before it."""

    cut: str
    """Id of the first message that is sent in full."""
    text: str
    tokens: int
    first: int
    """First and last stored position covered; 0 where only unstored messages were."""
    last: int
    quality: str
    written_ms: int
    """Time stamp of the newest message covered."""

    def as_message(self, text: str) -> Made:
        """The summary as an item of an answer."""
        return Made(
            role="user",
            kind="summary",
            ref=f"digest-{self.cut}",
            text=f"Summary of the conversation so far:\n{text}",
            timestamp_ms=self.written_ms,
            covers=(self.first, self.last) if self.last else None,
        )


async def load(session: Session) -> Digest | None:
    """The session's summary; `None` while there is none, or once the history was rewound behind it."""
    value = await session.state(STATE)
    digest = json.decode(value, type=Digest) if value else None
    return digest if digest and await session.timeline.has(digest.cut) else None


async def replace(session: Session, earlier: Digest | None, digest: Digest) -> bool:
    """Keep the summary in place of `earlier`; false where another one was kept meanwhile."""
    if await load(session) != earlier or not await session.timeline.has(digest.cut):
        return False
    await session.save_state(STATE, json.encode(digest))
    return True


async def extend(
    summariser: Summariser,
    earlier: Digest | None,
    dropped: list[Entry],
    cut: str,
    target_tokens: int,
    count: Callable[[str], int],
    instructions: str = "",
) -> Digest:
    """A summary of what `earlier` covered and of `dropped`, which follows it."""
    sources = [
        SourceMessage(e.message_id, e.turn_id, e.role, plain_text(e.reading), e.timestamp_ms) for e in dropped
    ]
    summary = await summariser.summarise(
        SummaryRequest(
            sources=sources,
            target_tokens=target_tokens,
            earlier=earlier.text if earlier else "",
            instructions=instructions,
        )
    )
    positions = [e.position for e in dropped if e.position]
    return Digest(
        cut=cut,
        text=summary.text,
        tokens=count(summary.text),
        first=earlier.first if earlier and earlier.first else min(positions, default=0),
        last=max(positions, default=earlier.last if earlier else 0),
        quality=summary.quality,
        written_ms=max((e.timestamp_ms for e in dropped), default=earlier.written_ms if earlier else 0),
    )
