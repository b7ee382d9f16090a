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
"""Maximum share of a budget for the summary; half of it if recall is on."""
LEAST_SUMMARY = 200
"""Tokens below which recalled passages are worth more than a summary."""
SOURCES = 400
"""Maximum messages summarised at once, the newest ones; older ones stay stored."""


class DefaultEngine(WindowedEngine["Digest"]):
    """One summary of older messages; recent ones intact."""

    info = EngineInfo(id="default", name="Default", version="1.0")
    settings_model = "sidecar.engines.settings:DefaultSettings"
    buffers_episodes = True

    async def front(self, session: Session) -> Digest | None:
        """The summary, which also records where the window begins."""
        return await load(session)

    async def move(self, session: Session, window: Window, front: Digest | None, most: int) -> Digest | None:
        """The summary extended to the window's cut, without a model."""
        if not window.entries:  # applies to this answer only
            return front
        return await self._advance(session, window, front, most, self.host.extractive)

    async def advance(
        self, session: Session, window: Window, front: Digest | None, request: CompactRequest, most: int
    ) -> Digest | None:
        """Summarise the older part of the window, with the host's model if it has one."""
        session.progress("summarising", 10)
        instructions = request.custom_instructions or ""
        # Without room for a summary, do not ask a model for one.
        summariser = self.host.summariser if most else self.host.extractive
        advanced = await self._advance(session, window, front, most, summariser, instructions)
        return None if advanced is front else advanced

    async def settled(
        self, session: Session, window: Window, front: Digest | None, room: int
    ) -> tuple[Digest | None, list[Kept | Made]]:
        """The system messages, and the summary if the window leaves room for it."""
        if front and front.shown_tokens and window.tokens + front.tokens > room:
            front = structs.replace(front, left_out=True)
            await save(session, front)
        items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
        if front and front.text and not front.left_out:
            items.append(front.as_message())
        return front, items

    def shown(self, front: Digest | None) -> int:
        """Tokens of the summary; 0 if it is left out."""
        return front.shown_tokens if front else 0

    def reserve(self, room: int) -> int:
        """Tokens of the room reserved for the summary; with recall on, 0 if they are too few to be useful."""
        settings = self._settings
        most = settings.summaryTokens if settings else SUMMARY_TOKENS
        share = SUMMARY_SHARE / 2 if self.recollector.share else SUMMARY_SHARE
        summary = min(most, int(room * share))
        return summary if summary >= LEAST_SUMMARY or not self.recollector.share else 0

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
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
        """The summary extended to the window's cut; `digest` unchanged if that was not possible."""
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
    """Where the window begins, and the summary of the messages before it."""

    id: str
    """Identifies this summary in answers."""
    cut: str
    """Id of the first message that is sent in full."""
    text: str
    tokens: int
    """Tokens of the summary as a message; recounted at each load, because calibration changes."""
    first: int
    """First place on the timeline that is covered, `last` the last one; 0 if nothing is."""
    last: int
    quality: str
    written_ms: int
    """Timestamp of the newest message covered."""
    left_out: bool = False
    """Whether it is omitted to make room for the newest messages; it returns with the next cut."""

    @property
    def shown_tokens(self) -> int:
        """Tokens that it takes in an answer."""
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
        """The summary shortened to at most `limit` tokens by dropping its oldest lines."""
        lines, tokens = self.text.splitlines(), self.tokens
        while tokens > limit and lines:
            lines = lines[max(1, len(lines) // 8) :]
            tokens = _cost(_id(self.cut, "\n".join(lines)), "\n".join(lines), count)
        text = "\n".join(lines)
        return structs.replace(self, id=_id(self.cut, text), text=text, tokens=tokens if lines else 0)


async def load(session: Session) -> Digest | None:
    """The session's summary; `None` if there is none, or if a rewind removed its cut."""
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
    """Store the summary."""
    await session.save_state(STATE, json.encode(digest))


async def replace(session: Session, earlier: Digest | None, digest: Digest) -> bool:
    """Store the summary in place of `earlier`. Returns false if another one was stored meanwhile."""
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
    """A summary of what `earlier` covers and of the messages in `dropped`, which follow it."""
    sources = [entry for entry in dropped if entry.role != "system" and not entry.heartbeat]
    summary = await summariser.summarise(
        SummaryRequest(
            sources=[_source(entry) for entry in sources],
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
    """Tokens of a message with this summary."""
    fenced = fence.sized(Mark("summary", _ref(digest_id)), PREFACE + text)
    return count(fenced) + MESSAGE_OVERHEAD


def _ref(digest_id: str) -> str:
    return f"digest-{digest_id}"


def _id(cut: str, text: str) -> str:
    return digest_of(f"{cut} {text}")
