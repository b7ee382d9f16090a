"""The `default` engine: one summary of older messages, recent ones intact."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from msgspec import Struct, json, structs

from sidecar.engine.calls import CompactRequest, Kept, Made
from sidecar.engine.contract import EngineInfo
from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest as digest_of
from sidecar.engine.window import Window
from sidecar.engines.defaults import COMPACT_TO, SUMMARY_TOKENS
from sidecar.engines.windowed import WindowedEngine
from sidecar.messages import fence
from sidecar.messages.contract import Mark
from sidecar.messages.text import plain_text
from sidecar.summarize.contract import SourceMessage, Summariser, SummaryRequest
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD

if TYPE_CHECKING:
    from sidecar.engines.settings import DefaultSettings

SUMMARY_SHARE = 0.25
"""Share of a budget that the summary takes at most; half of it where older messages are recalled as well."""
LEAST_SUMMARY = 200
"""Tokens below which passages say more than a summary does."""
SOURCES = 400
"""Messages that one summary is made of at most, the newest ones; what is older stays stored."""


class DefaultEngine(WindowedEngine["Digest"]):
    """One summary of older messages, the recent ones intact."""

    info = EngineInfo(id="default", name="Default", version="1.0")
    settings_model = "sidecar.engines.settings:DefaultSettings"
    buffers_episodes = True

    async def front(self, session: Session) -> Digest | None:
        """The summary, which knows where the window begins."""
        return await load(session)

    async def move(self, session: Session, window: Window, front: Digest | None, most: int) -> Digest | None:
        """The summary moved on to the window's cut, without a model."""
        if not window.entries:  # which holds for this answer alone
            return front
        return await self._advance(session, window, front, most, self.host.extractive)

    async def advance(
        self, session: Session, window: Window, front: Digest | None, request: CompactRequest, most: int
    ) -> Digest | None:
        """Summarises the older part of the window, with the host's model where it has one."""
        session.progress("summarising", 10)
        wishes = request.custom_instructions or ""
        # A model is not asked for a summary that there is no room for.
        summariser = self.host.summariser if most else self.host.extractive
        advanced = await self._advance(session, window, front, most, summariser, wishes)
        return None if advanced is front else advanced

    async def settled(
        self, session: Session, window: Window, front: Digest | None, room: int
    ) -> tuple[Digest | None, list[Kept | Made]]:
        """The system messages, and the summary where the window leaves it room."""
        if front and front.shown_tokens and window.tokens + front.tokens > room:
            front = structs.replace(front, left_out=True)
            await save(session, front)
        items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
        if front and front.text and not front.left_out:
            items.append(front.as_message())
        return front, items

    def shown(self, front: Digest | None) -> int:
        """Tokens of the summary where it is sent."""
        return front.shown_tokens if front else 0

    def reserve(self, room: int) -> int:
        """Tokens of some room that are kept free for the summary; none where they are too few to say much."""
        settings = self._settings
        most = settings.summaryTokens if settings else SUMMARY_TOKENS
        share = SUMMARY_SHARE / 2 if self.recollector.share else SUMMARY_SHARE
        summary = min(most, int(room * share))
        return summary if summary >= LEAST_SUMMARY or not self.recollector.share else 0

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        return self._settings.compactTo if self._settings else COMPACT_TO

    async def _advance(
        self,
        session: Session,
        window: Window,
        digest: Digest | None,
        target: int,
        summariser: Summariser,
        instructions: str = "",
    ) -> Digest | None:
        """The summary moved on to the window's cut; `digest` as it was where that was not possible."""
        if window.cut is None or (digest and digest.cut == window.cut):
            return digest
        dropped = await session.timeline.before(window.cut, SOURCES, digest.cut if digest else None)
        advanced = await extend(summariser, digest, dropped, window.cut, target, session.count, instructions)
        return advanced if await replace(session, digest, advanced) else digest

    @property
    def _settings(self) -> DefaultSettings | None:
        return cast("DefaultSettings | None", self.host.configured)


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
    """Whether the newest messages needed its room; it comes back with the next cut, which ends the prefix."""

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
