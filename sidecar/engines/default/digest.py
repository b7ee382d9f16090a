"""The one summary that stands for everything before the window."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, json, structs

from sidecar.engine.calls import Made
from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest as digest_of
from sidecar.messages import fence
from sidecar.messages.contract import Mark
from sidecar.messages.text import plain_text
from sidecar.summarize.contract import SourceMessage, Summariser, SummaryRequest
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD

STATE = "digest"
PREFACE = "Summary of the conversation so far:\n"


class Digest(Struct, frozen=True, kw_only=True):
    """Where the window begins, and what stands for the messages before it."""

    id: str
    """Names this summary in the answers that it is part of."""
    cut: str
    """Id of the first message that is sent in full."""
    text: str
    tokens: int
    """What the message with the summary takes; counted anew at each load, since counts are calibrated."""
    first: int
    """First and last place on the timeline that is covered; 0 where nothing is."""
    last: int
    quality: str
    written_ms: int
    """Time stamp of the newest message covered."""
    left_out: bool = False
    """The newest messages needed its room; it comes back once the window is cut, which ends the prefix."""

    @property
    def shown_tokens(self) -> int:
        """What it takes of an answer."""
        return 0 if self.left_out else self.tokens

    def as_message(self) -> Made:
        """The summary as an item of an answer."""
        return Made(
            role="user",
            kind="summary",
            ref=_ref(self.id),
            text=PREFACE + self.text,
            timestamp_ms=self.written_ms,
            covers=(self.first, self.last) if self.last else None,
        )

    def within(self, limit: int, count: Callable[[str], int]) -> Digest:
        """The same summary without as many of its oldest lines as it takes to have at most `limit` tokens."""
        lines, tokens = self.text.splitlines(), self.tokens
        while tokens > limit and lines:
            lines = lines[max(1, len(lines) // 8) :]
            tokens = _cost(_id(self.cut, "\n".join(lines)), "\n".join(lines), count)
        text = "\n".join(lines)
        return structs.replace(self, id=_id(self.cut, text), text=text, tokens=tokens if lines else 0)


async def load(session: Session) -> Digest | None:
    """The session's summary; `None` while there is none, or once the history was rewound behind it."""
    value = await session.state(STATE)
    kept = json.decode(value, type=Digest) if value else None
    cut = await session.timeline.resolve(kept.cut) if kept else None
    if kept is None or cut is None:
        return None
    if cut != kept.cut:
        kept = structs.replace(kept, cut=cut)
        await save(session, kept)
    return structs.replace(kept, tokens=_cost(kept.id, kept.text, session.count)) if kept.text else kept


async def save(session: Session, digest: Digest) -> None:
    """Keep the summary."""
    await session.save_state(STATE, json.encode(digest))


async def replace(session: Session, earlier: Digest | None, digest: Digest) -> bool:
    """Keep the summary in place of `earlier`; false where another one was kept meanwhile."""
    if await load(session) != earlier or not await session.timeline.resolve(digest.cut):
        return False
    await save(session, digest)
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
    told = [entry for entry in dropped if entry.role != "system" and not entry.heartbeat]
    summary = await summariser.summarise(
        SummaryRequest(
            sources=[_source(entry) for entry in told],
            target_tokens=max(target_tokens - _cost(_id(cut, PREFACE), PREFACE, count), 1),
            earlier=earlier.text if earlier else "",
            instructions=instructions,
        )
    )
    digest = Digest(
        id=_id(cut, summary.text),
        cut=cut,
        text=summary.text,
        tokens=_cost(_id(cut, summary.text), summary.text, count) if summary.text else 0,
        first=earlier.first if earlier and earlier.first else min((e.place for e in dropped), default=0),
        last=max((e.place for e in dropped), default=earlier.last if earlier else 0),
        quality=summary.quality,
        written_ms=max((e.timestamp_ms for e in dropped), default=earlier.written_ms if earlier else 0),
    )
    return digest if digest.tokens <= target_tokens else digest.within(target_tokens, count)


def _source(entry: Entry) -> SourceMessage:
    whole = entry.whole or entry
    text, sender = plain_text(whole.reading), whole.reading.sender
    return SourceMessage(entry.message_id, entry.turn_id, entry.role, text, entry.timestamp_ms, sender)


def _cost(digest_id: str, text: str, count: Callable[[str], int]) -> int:
    """What a message with this summary takes."""
    fenced = fence.sized(Mark("summary", _ref(digest_id)), PREFACE + text)
    return count(fenced) + MESSAGE_OVERHEAD


def _ref(digest_id: str) -> str:
    return f"digest-{digest_id}"


def _id(cut: str, text: str) -> str:
    return digest_of(f"{cut} {text}")
