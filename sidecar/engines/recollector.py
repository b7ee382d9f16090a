"""Recalls what a situation calls for of the messages that an engine no longer sends.

What is recalled stands in messages behind the newest ones, and keeps its place and its bytes until the window
begins elsewhere: so it costs the provider's prompt cache nothing of what stands in front of it.
"""

from __future__ import annotations

import time
from asyncio import wait_for
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import MsgspecError, Struct, json, structs

from sidecar.engine.calls import Kept, Made
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import SLACK, Window, tokens_of
from sidecar.messages import fence
from sidecar.messages.contract import Mark
from sidecar.messages.pairing import units
from sidecar.messages.text import fold, plain_text
from sidecar.recall.instructions import Instruction
from sidecar.recall.ledger import NEW, Ledger
from sidecar.recall.passages import rough_tokens
from sidecar.recall.plans import PlanFound
from sidecar.recall.recollection import Noted, Recollection, write_notes
from sidecar.recall.retrieval import HITS, REACH, Passage, Remark, as_whole, retrieve
from sidecar.recall.situations import situation
from sidecar.recall.working_set import WorkingSet, take_note
from sidecar.store.search import SearchQuery, SearchResult
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD, readable_text

MARGIN = 0.97
"""Share of the budget that is filled: providers count in another way than we do."""
LEAST, LEAST_NOTES = 120, 32
"""Tokens of room below which nothing is recalled, and below which nothing is noted."""
GROWN = 1.25
"""How much more room there must be to recall more for the same prompt."""
FIRST_SHARE, SMALL, FIRST = 0.8, 1000, 4000
"""Bounds of the first recollection behind a cut: a share of what may be recalled (all up to `SMALL` tokens),
and tokens."""
LATER_SHARE, LATER = 0.15, 300
"""Bounds of what one later prompt recalls: above three quarters of the budget a share of the room left, and
always tokens, since the next messages need most of the room."""
OF_SOURCE = 0.5
"""Share of the messages in front of the window that is recalled at most: more of them had better be sent."""
FEW_HITS = 24
"""Messages that are looked at for a later prompt: there is room for no more."""
NOTES, FEW_NOTES, SHORT_OF_ROOM = 2000, 250, 0.5
"""Tokens of notes at most; those that a small room gives to notes too, and the share that it gives."""


S = TypeVar("S", bound=Struct)


class Block(Struct, frozen=True, array_like=True):
    """What was recalled at one moment."""

    anchor: str
    """Id of the message behind which it stands; empty in front of the window."""
    prompt: str
    """Stands for the prompt that called for it."""
    budget: int
    """Tokens that the answer had."""
    text: str
    tokens: int
    """What it takes, before calibration."""
    shown: list[tuple[int, int]]
    """Position and part of each passage."""
    reasons: list[tuple[int, str]]
    """Why each message that it quotes was recalled."""
    ref: str
    """Names the block; it stays when a message that was not stored yet gets another id."""
    timestamp_ms: int

    def as_message(self) -> Made:
        """The block as an item of an answer."""
        return Made(
            role="user",
            kind="recall",
            ref=self.ref,
            text=self.text,
            timestamp_ms=self.timestamp_ms,
            lasting=True,
            quotes=tuple(self.reasons),
        )


class Recalled(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that was recalled since the window began where it does."""

    cut: str = ""
    """Id of the message at which the window begins."""
    blocks: list[Block] = []

    @property
    def plain_tokens(self) -> int:
        """What the blocks take, before calibration."""
        return sum(block.tokens for block in self.blocks)


class Quiet(Struct, frozen=True, array_like=True):
    """The turn in which the host asked for room, whatever the view."""

    at: str = ""
    """Id of the message that was the newest then."""
    prompts: list[str] = []
    """Stand for its prompts: nothing more is recalled for them."""


STATE = "recalled"
LOOK_BACK, LOOK_BACK_TOKENS = 1200, 60_000
"""Messages, and tokens, in front of the window whose values are noted."""
NEAREST = 16
"""Messages in front of the window among which the last stored one is looked for."""
ANCHOR_TOKENS, ANCHOR_REACH = 4096, 64
"""Tokens and messages from the end among which the last whole unit is looked for."""
NEWEST_TEXTS = 3
"""Messages at the end that a short prompt is read with."""
SOME = Mark("recall", "01234567")
"""As long as the mark of any block."""


class Recollector:
    """Recalls for the sessions of one engine; what it read of them is kept for the next prompt."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        self._sessions: OrderedDict[tuple[str, str], SessionRemarks] = OrderedDict()
        self.measure = Measure(host.tokens)

    @property
    def share(self) -> float:
        """Share of a budget that may be recalled; 0 where recall is off."""
        return self._host.recall_share

    async def open(self, session: Session, prompt: str, cut: str | None) -> Recollections:
        """What was recalled since the window begins at `cut`, with what the prompt leaves of it."""
        entries = (await session.timeline.tail(ANCHOR_TOKENS)).entries
        asked = await _asked_last(session)
        kept, anchor = await _load(session), _anchor(entries)
        at = anchor.message_id if anchor else ""
        quiet = _decoded(await session.state(QUIET), Quiet) or Quiet()
        asked_now = {block.prompt for block in kept.blocks if block.anchor == at}
        if quiet.at == at:
            asked_now.update(quiet.prompts)
        if not cut or kept.cut != cut or not self.share:
            kept = Recalled()
        return Recollections(self, session, prompt or asked, asked, anchor, kept, quiet, asked_now)

    def known(self, session: Session) -> SessionRemarks:
        """The history of a session as it was read so far."""
        key = (session.session_id, session.history.version)
        known = self._sessions.get(key)
        if known is None:
            known = self._sessions[key] = SessionRemarks()
        self._sessions.move_to_end(key)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return known

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Read a message that was just stored, so that the next answer finds that done."""
        if self.share:
            known = self.known(session)
            known.note(entry)
            take_note(entry.reading)
            if known.is_behind(session.history.count):
                await known.catch_up(session, Reader(session, known, BEHIND_S))


class Recollections:
    """What was recalled of one session, for the length of a call."""

    def __init__(
        self,
        recollector: Recollector,
        session: Session,
        prompt: str,
        asked: str,
        anchor: Entry | None,
        kept: Recalled,
        quiet: Quiet,
        asked_now: Collection[str],
    ) -> None:
        self._recollector = recollector
        self._session = session
        self._anchor = anchor
        self._kept = kept
        self.prompt = prompt
        self.is_sent_apart = fold(asked) != fold(prompt)
        """Whether the prompt is not in the history: then the host sends it itself."""
        self._key = digest(fold(prompt))
        self._now = _without_unused(kept, anchor, self._key)
        self._quiet = quiet
        self._asked_now = asked_now
        """Stand for the prompts that were sent apart since the newest message."""
        self._makes_room = False

    @property
    def _is_quiet(self) -> bool:
        return self._key in self._quiet.prompts

    @property
    def tokens(self) -> int:
        """What all of it takes of a budget."""
        return self._session.calibrated(self._now.plain_tokens)

    @property
    def texts(self) -> list[str]:
        """The texts of it."""
        return [block.text for block in self._now.blocks]

    def forget(self) -> None:
        """Let go of everything, since the window begins elsewhere."""
        self._now = structs.replace(self._now, blocks=[])

    def make_room(self) -> None:
        """Let go of everything, and from now on recall notes alone: whoever asks for room wants to have it.

        That goes for the prompt of this turn, whether it is in the history or was sent apart. Later answers
        to it recall nothing more.
        """
        at = self._anchor.message_id if self._anchor else ""
        prompts = {self._key, *self._asked_now}
        self._quiet = Quiet(at, sorted(prompts))
        self.forget()
        self._makes_room = True

    def wanted(self, room: int) -> int:
        """Tokens that a first recollection may take of so many."""
        share = int(room * self._recollector.share)
        return min(max(int(share * FIRST_SHARE), min(share, SMALL)), FIRST)

    async def fill(self, window: Window, budget: int, spent: int, *, most: int = FIRST) -> None:
        """Recall what the prompt calls for, where something was cut and there is room.

        `spent` is what stands in front of the window.
        """
        share, now = self._recollector.share, self._now
        now = self._now = _without_lost(now, window, self._anchor)
        if window.cut is None or not share or (self._is_quiet and not self._makes_room):
            return
        if now.cut != window.cut:
            now = self._now = structs.replace(now, cut=window.cut)
        own = [block for block in now.blocks if block.prompt == self._key and self._is_open(block, window)]
        if own and budget <= own[-1].budget * GROWN:
            return
        room = self._room(window, budget, spent, most)
        block = await self._block(window, budget, _plain(self._session, room))
        if block is not None:
            self._now = structs.replace(now, blocks=[*now.blocks, block])

    async def save(self) -> None:
        """Keep what was recalled, where that is something new."""
        if self._makes_room:
            await self._session.save_state(QUIET, json.encode(self._quiet))
        if self._now != self._kept:
            await self._session.save_state(STATE, json.encode(self._now))
            self._kept = self._now

    def placed(self, front: Iterable[Kept | Made], entries: Sequence[Entry]) -> list[Kept | Made]:
        """What stands in front of the window, then the window with each block behind its anchor."""
        items: list[Kept | Made] = list(front)
        blocks: dict[str, list[Block]] = {}
        for block in self._now.blocks:
            blocks.setdefault(block.anchor, []).append(block)
        items += [block.as_message() for block in blocks.pop("", ())]
        for entry in entries:
            items.append(Kept(entry, "system" if entry.role == "system" else "recent"))
            items += [block.as_message() for block in blocks.pop(entry.message_id, ())]
        return items + [block.as_message() for left in blocks.values() for block in left]

    def _room(self, window: Window, budget: int, spent: int, most: int) -> int:
        """Tokens that one more block may take."""
        system = tokens_of(window.system)
        room = int(budget * MARGIN)
        free = max(room - system, 0)
        measure, texts = self._recollector.measure, self.texts
        excess = measure.excess([*window.system, *window.entries], texts, self.tokens)
        taken = window.tokens + spent + self.tokens
        left = room - taken - excess
        if not window.entries:
            return min(left, most)
        slack = int(budget * SLACK) if system * 2 <= budget else system + int(free * SLACK)
        if not self._now.blocks:
            return min(left, max(slack - taken, FEW_NOTES), self.wanted(free), most)
        later = min(left, max(slack - taken, int(left * LATER_SHARE)), LATER)
        return min(later, int(budget * self._recollector.share) - self.tokens, most)

    async def _block(self, window: Window, budget: int, room: int) -> Block | None:
        """What the moment calls for and is not there yet; `None` where that is nothing."""
        measure = self._recollector.measure
        count = measure.text
        room -= framed("", count)
        if room < (LEAST if self._now.blocks else LEAST_NOTES):
            return None
        session, known = self._session, self._recollector.known(self._session)
        is_first = not self._now.blocks
        before = await _in_front(session, window, LOOK_BACK if is_first else NEAREST)
        last = next((entry.position for entry in reversed(before) if entry.position), 0)
        if is_first and window.entries and len(before) < LOOK_BACK:
            room = min(room, _most_of(before, room))
        shown = [pair for block in self._now.blocks for pair in block.shown]
        visible = [(entry.position, 0) for entry in window.entries if entry.position]
        asked = situation(
            self.prompt, [plain_text(entry.reading) for entry in window.entries[-NEWEST_TEXTS:]]
        )
        ranked: Sequence[Passage] = ()
        if not self._is_quiet:
            ranked = await retrieve(
                Reader(session, known), asked, last, FEW_HITS if room <= LATER else HITS, REACH
            )
        notes, reasons = "", list[tuple[int, str]]()
        if is_first:
            notes_room = min(NOTES, int(max(room * SHORT_OF_ROOM, min(FEW_NOTES, room))))
            await known.catch_up(session, Reader(session, known))
            noted = Noted(*_unseen(known.ledger, window), known.values(before))
            said = [plain_text(entry.reading) for entry in window.entries]
            written = write_notes(noted, said, notes_room, count, asked.terms)
            notes, reasons = written.text, written.reasons
            room -= count(notes)
        passages = Recollection(room, count, shown + visible)
        if not self._is_quiet:
            passages.add(ranked, room)
            if not window.entries:
                passages.add((as_whole(remark_of(entry)) for entry in reversed(before)), room)
        text = "\n".join(filter(None, (notes, passages.text())))
        if not text:
            return None
        at = self._anchor
        anchor = at.message_id if at else ""
        return Block(
            anchor=anchor,
            prompt=self._key,
            budget=budget,
            text=text,
            tokens=framed(text, measure.counted),
            shown=passages.shown,
            reasons=[*reasons, *passages.reasons],
            ref=digest(f"{anchor} {text}")[:8],
            timestamp_ms=at.timestamp_ms if at else 0,
        )

    def _is_open(self, block: Block, window: Window) -> bool:
        """Whether a block is for the turn that is open, and not for the same words in an earlier turn."""
        ids = [entry.message_id for entry in window.entries]
        if block.anchor not in ids:
            return not block.anchor
        opened = [entry for entry in window.entries[ids.index(block.anchor) + 1 :] if entry.opens_turn]
        return not opened or (len(opened) == 1 and digest(fold(plain_text(opened[0].reading))) == self._key)


class Measure:
    """Two counts of the same, by the tokenizer and by characters; the larger one holds.

    Many runtimes take four characters, or one of Han, for a token: of English prose that is up to a third
    more than a tokenizer finds, of source code it is less.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def counted(self, text: str) -> int:
        """Tokens of a text by the tokenizer, before calibration."""
        return self._counter.count(text)

    def text(self, text: str) -> int:
        """Tokens of a text by the count that finds more, before calibration."""
        return max(self._counter.count(text), rough_tokens(text)) if text else 0

    def excess(self, entries: Iterable[Entry], texts: Iterable[str] = (), counted: int = 0) -> int:
        """By how many tokens a count of characters finds more in messages, and in our own texts.

        `counted` is what the texts take by the tokenizer.
        """
        listed = list(entries)
        rough = sum(rough_tokens(readable_text(entry.reading)) + MESSAGE_OVERHEAD for entry in listed)
        rough += sum(rough_tokens(text) + FENCE for text in texts)
        return max(rough - tokens_of(listed) - counted, 0)


CODE = 4
"""Tokens by which the code in one mark may exceed that in another."""
FENCE = 16 + MESSAGE_OVERHEAD
"""Tokens of the marks around a text of our own, by characters."""
KEPT_SESSIONS = 32
KEPT_REMARKS, KEPT_CHARACTERS = 2000, 1_000_000
"""Messages of one session that are kept as text, and their characters."""
GAP = 3
"""Messages between two wanted ones up to which they are read in one go."""
PATIENCE_S, LATE_S = 0.1, 0.2
"""Seconds for which an answer searches for passages, or for instructions and the plan in a history that came
as a whole; and by which a search may be late with what it has: waiting for a thread, it has nothing."""
BEHIND_S = 2.0
"""The same for what no answer waits for."""
AGAIN = 1.25
"""How much longer a history must be to be searched again behind an import."""
LEDGER, QUIET = SHARED = "ledger", "quiet"
"""The states of the session, whatever the view: the ledger, and the turn in which the host asked for room."""
SPAN = 2400
"""Messages whose values are kept together at most; then the newest ones are taken in again."""


class SessionRemarks:
    """What was read of one session. It outlives calls, and so holds nothing of the session but text."""

    def __init__(self) -> None:
        self._remarks: dict[int, Remark] = {}
        self._characters = 0
        self._values = WorkingSet()
        self._first = self._last = 0
        """Positions of the first and the last message whose values were taken in."""
        self.ledger = Ledger()
        self._is_restored = False
        self._tried = 0
        """How many messages there were when the ledger was to catch up last."""
        self._saved = 0
        """How far the ledger had come when it was saved."""

    def note(self, entry: Entry) -> None:
        """Keep a message that was just stored."""
        self._keep(entry)
        if entry.position:
            self.ledger.add(self._remarks[entry.position])
        while len(self._remarks) > KEPT_REMARKS or self._characters > KEPT_CHARACTERS:
            self._characters -= len(self._remarks.pop(next(iter(self._remarks))).text)

    def _keep(self, entry: Entry) -> None:
        position, remark = entry.position or 0, remark_of(entry)
        before = self._remarks.get(position)
        self._characters += len(remark.text) - (len(before.text) if before else 0)
        self._remarks[position] = remark

    async def remarks(self, session: Session, positions: Sequence[int]) -> dict[int, Remark]:
        """What these messages say, those of them that say anything."""
        missing = sorted(position for position in set(positions) if position not in self._remarks)
        for first, last in _runs(missing):
            for entry in await session.history.read(first, last):
                self._keep(entry)
        found = {p: self._remarks[p] for p in positions if p in self._remarks and self._remarks[p].text}
        if len(self._remarks) > KEPT_REMARKS or self._characters > KEPT_CHARACTERS:
            self._remarks.clear()
            self._characters = 0
        return found

    def values(self, before: Sequence[Entry]) -> WorkingSet:
        """The values of these messages, which follow each other, and perhaps of some in front of them."""
        first, last = (before[0].position, before[-1].position) if before else (None, None)
        if first is None or last is None:
            values = WorkingSet()
            for entry in before:
                values.add(entry.reading)
            return values
        if not (self._first <= first <= self._last + 1 and self._last <= last < self._first + SPAN):
            self._values, self._first, self._last = WorkingSet(), first, first - 1
        for entry in before:
            if entry.position is None or entry.position > self._last:
                self._values.add(entry.reading)
        self._last = last
        return self._values

    def is_behind(self, count: int) -> bool:
        """Whether the ledger lacks many of so many messages, and has not been tried with nearly as many."""
        return count - self.ledger.told > NEW and count > self._tried * AGAIN

    async def catch_up(self, session: Session, reader: Reader) -> None:
        """Bring the ledger to the newest message as far as the reader comes, and save it."""
        count = self._tried = session.history.count
        if not self._is_restored:
            self._is_restored = True
            self.ledger.restore(await session.state(LEDGER), session.history.version)
            self._saved = self.ledger.told
        await self.ledger.catch_up(reader, count)
        if self.ledger.told > self._saved:
            self._saved = self.ledger.told
            await session.save_state(LEDGER, self.ledger.encoded(session.history.version))


class Reader:
    """The history of a session, searched for so many seconds in all; what comes later finds nothing."""

    def __init__(self, session: Session, known: SessionRemarks, seconds: float | None = None) -> None:
        self._session = session
        self._known = known
        self._until = time.monotonic() + (PATIENCE_S if seconds is None else seconds)
        self.is_whole = True
        """Whether every search so far came to its end, but for messages of little worth in one for words."""

    async def search(self, query: SearchQuery) -> SearchResult:
        """See `RemarkSource`."""
        found = SearchResult([], complete=False)
        left = self._until - time.monotonic()
        if left > 0:
            asked = structs.replace(query, most_s=left)
            with suppress(TimeoutError):
                found = await wait_for(self._session.history.search(asked), left + LATE_S)
        if time.monotonic() >= self._until or not (found.complete or query.kind == "words"):
            self.is_whole = False
        return found

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        """See `RemarkSource`."""
        return await self._known.remarks(self._session, positions)


def remark_of(entry: Entry) -> Remark:
    """What a message of the session says; nothing where it is a system message or a heartbeat."""
    reading = entry.reading
    silent = entry.heartbeat or entry.role == "system"
    return Remark(
        entry.position or 0,
        entry.turn_id,
        entry.role,
        entry.timestamp_ms,
        "" if silent else plain_text(reading),
        bool(reading.results),
        bool(reading.calls),
    )


def framed(text: str, count: Callable[[str], int], mark: Mark = SOME) -> int:
    """What a message with this text and mark takes at most, before calibration."""
    return count(fence.sized(mark, text)) + MESSAGE_OVERHEAD + CODE


def _most_of(entries: Sequence[Entry], room: int) -> int:
    """Tokens of some messages that may be recalled, counted as long as they are fewer than the room."""
    taken = 0
    for entry in reversed(entries):
        taken += entry.tokens
        if taken * OF_SOURCE >= room:
            break
    return int(taken * OF_SOURCE)


def _unseen(ledger: Ledger, window: Window) -> tuple[Sequence[Instruction], PlanFound | None]:
    """The instructions and the plan of the ledger that stand in no message of the window."""
    seen = {entry.position for entry in window.entries}
    plan = ledger.plan
    standing = [each for each in ledger.standing if each.remark.position not in seen]
    return standing, plan if plan and plan.remark.position not in seen else None


async def _in_front(session: Session, window: Window, reach: int) -> Sequence[Entry]:
    """The newest messages that the window does not hold."""
    if window.cut and window.entries:
        return await session.timeline.before(window.cut, reach)
    return (await session.timeline.tail(LOOK_BACK_TOKENS)).entries[-LOOK_BACK:]


def _decoded(value: bytes | None, kind: type[S]) -> S | None:
    """A value that was saved, where it is of this kind still."""
    try:
        return json.decode(value, type=kind) if value else None
    except MsgspecError:
        return None


async def _load(session: Session) -> Recalled:
    """What was recalled, where its places are on the timeline still."""
    kept = _decoded(await session.state(STATE), Recalled) or Recalled()
    cut = await session.timeline.resolve(kept.cut) if kept.cut else None
    if cut is None:
        return Recalled()
    blocks: list[Block] = []
    for block in kept.blocks:
        anchor = await session.timeline.resolve(block.anchor) if block.anchor else ""
        if anchor is not None:
            blocks.append(block if anchor == block.anchor else structs.replace(block, anchor=anchor))
    return structs.replace(kept, cut=cut, blocks=blocks)


def _without_unused(kept: Recalled, at: Entry | None, key: str) -> Recalled:
    """The same without what was recalled at this very place for another prompt, which never came to be."""
    if at is None:
        return kept
    blocks = [block for block in kept.blocks if block.anchor != at.message_id or block.prompt == key]
    return kept if len(blocks) == len(kept.blocks) else structs.replace(kept, blocks=blocks)


def _without_lost(kept: Recalled, window: Window, at: Entry | None) -> Recalled:
    """The same without what stood behind a message that has left the window, such as a heartbeat's."""
    places = {"", *(entry.message_id for entry in window.entries)}
    if at is not None:
        places.add(at.message_id)
    blocks = [block for block in kept.blocks if block.anchor in places]
    return kept if len(blocks) == len(kept.blocks) else structs.replace(kept, blocks=blocks)


def _anchor(entries: Sequence[Entry]) -> Entry | None:
    """The last message behind which a text may stand: not between a call and its results."""
    newest = entries[-ANCHOR_REACH:]
    for unit in reversed(units([entry.reading for entry in newest])):
        if not unit.open:
            return newest[unit.indices[-1]]
    return None


async def _asked_last(session: Session) -> str:
    """The text of the user message that opened the newest turn."""
    newest = (await session.timeline.tail(0)).entries
    opener = await session.timeline.opener(newest[-1].turn) if newest else None
    return plain_text(opener.reading) if opener else ""


def _plain(session: Session, tokens: int) -> int:
    """How many tokens before calibration count as at most so many in a budget."""
    return tokens * tokens // max(session.calibrated(tokens), 1) if tokens > 0 else 0


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """The positions in runs that are read in one go."""
    runs: list[tuple[int, int]] = []
    for position in positions:
        if runs and position - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], position)
        else:
            runs.append((position, position))
    return runs
