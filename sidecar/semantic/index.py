"""Makes vectors behind the store, and knows which messages have them."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sidecar.messages.dialects import dialect
from sidecar.messages.marks import Marks
from sidecar.semantic.model import DIMENSIONS, EmbeddingModel
from sidecar.semantic.search import Spoken, spoken
from sidecar.semantic.vectors import (
    CHUNK,
    MOST_MESSAGES,
    Near,
    Row,
    Shelf,
    Stretch,
    decoded,
    encoded,
    stretch_of,
)
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreError
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import DERIVED, SaveState, Write

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.semantic.model import Floats
    from sidecar.store.stored import StoredMessage


LOWER = 10
"""How far below the sidecar's the priority of the thread for messages is."""
QUESTIONS = 64
"""Questions whose vectors are kept, since several engines and budgets ask the same."""

Known = Mapping[int, tuple[Stretch, int]]

_log = logging.getLogger(__name__)


class Stopped(Exception):
    """Raised on the thread when nobody waits for the vectors any more."""


class VectorMaker:
    """One model with a thread for messages and another one for questions."""

    def __init__(self) -> None:
        self.problem: str | None = None
        """Why there is no model, once it was tried."""
        self._model: EmbeddingModel | None = None
        self._loading = threading.Lock()
        self._stopped = False
        self._messages = ThreadPoolExecutor(1, "semantic-messages", initializer=_give_way)
        self._questions = ThreadPoolExecutor(1, "semantic-questions")
        self._asked: OrderedDict[str, Floats] = OrderedDict()

    @property
    def is_loaded(self) -> bool:
        """Whether the model takes memory."""
        return self._model is not None

    async def stretch(
        self, dialect: Dialect, messages: Sequence[StoredMessage], first: int, count: int, known: Known
    ) -> Stretch:
        """The vectors of the messages from the position `first` on, of which `known` ones are not made anew.

        Raises:
            Stopped: the sidecar is closing.
            Exception: the model failed; `problem` says why.
        """
        loop = asyncio.get_running_loop()
        # On the slow thread it would take so long that questions wait for it.
        await loop.run_in_executor(self._questions, self._loaded)
        return await loop.run_in_executor(self._messages, self._make, dialect, messages, first, count, known)

    async def question(self, text: str) -> Floats:
        """The vector of a question.

        Raises:
            Exception: the model failed; `problem` says why.
        """
        vector = self._asked.get(text)
        if vector is None:
            loop = asyncio.get_running_loop()
            vector = await loop.run_in_executor(self._questions, self._embed_one, text)
            self._asked[text] = vector
            if len(self._asked) > QUESTIONS:
                self._asked.popitem(last=False)
        return vector

    def close(self) -> None:
        """Stop behind the passage that is worked on."""
        self._stopped = True
        self._messages.shutdown(wait=False, cancel_futures=True)
        self._questions.shutdown(wait=False, cancel_futures=True)

    def _make(
        self, dialect: Dialect, messages: Sequence[StoredMessage], first: int, count: int, known: Known
    ) -> Stretch:
        import numpy

        passages = list(spoken(dialect, messages, first))
        fresh: dict[int, int] = {}
        texts: list[str] = []
        for passage in passages:
            if passage.key not in known and passage.key not in fresh:
                fresh[passage.key] = len(texts)
                texts.append(passage.text)
        vectors = numpy.zeros((len(texts), DIMENSIONS), numpy.float32)
        for number, text in enumerate(texts):
            vectors[number] = self._embed_one(text)
        return stretch_of(count, [_row(passage) for passage in passages], fresh, vectors, known)

    def _embed_one(self, text: str) -> Floats:
        if self._stopped:
            raise Stopped
        model = self._loaded()
        try:
            return model.embed(text)
        except Exception as error:
            self._fail(error)
            raise

    def _loaded(self) -> EmbeddingModel:
        with self._loading:
            if self._model is None:
                try:
                    self._model = EmbeddingModel()
                except Exception as error:
                    self._fail(error)
                    raise
            return self._model

    def _fail(self, error: Exception) -> None:
        if self.problem is None:
            self.problem = f"{type(error).__name__}: {error}"
            _log.warning("search by meaning is off: %s", self.problem)


def _row(passage: Spoken) -> Row:
    return Row(passage.offset, passage.user, passage.key)


def _give_way() -> None:
    """Let everything else on the machine go first; elsewhere than on Linux this would be for all threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + LOWER)


REST_S = 0.25
"""Seconds that are waited for more messages before the newest ones are looked at."""
MOST_VECTORS = 200_000
"""Vectors of all sessions that are held in memory, about: 80 MB."""
NAME = DERIVED + "vectors."
"""What the names of stretches in the store begin with; their number follows."""
_TOGETHER = 16
"""Stretches that are read before others get their turn on the loop."""


class SemanticIndex:
    """Vectors of the newest messages of each session; those of no session are made before they are asked for.

    Nothing waits for it: what has no vector yet is found by its words.
    """

    def __init__(self, store: SessionStore, *, rest_s: float = REST_S) -> None:
        self._store = store
        self._rest_s = rest_s
        self._maker = VectorMaker()
        self._shelves: OrderedDict[SessionRef, Shelf] = OrderedDict()
        self._spare: dict[SessionRef, Known] = {}
        """Vectors of a session before it was changed, for texts that are still there."""
        self._behind: OrderedDict[SessionRef, None] = OrderedDict()
        self._reading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def problem(self) -> str | None:
        """Why nothing can be found by its meaning; `None` where all is well as far as is known."""
        return self._maker.problem

    @property
    def has_model(self) -> bool:
        """Whether the model was needed so far."""
        return self._maker.is_loaded

    def watch(self, writes: Sequence[Write]) -> None:
        """Take in that these writes have been committed; costs nothing but a look at each."""
        for write in writes:
            if write.error is not None:
                continue
            if write.verb in ("append", "truncate"):
                self.note(write.ref)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
            elif write.verb == "fork":
                self.note(write.child)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]

    def note(self, ref: SessionRef) -> None:
        """Have a session looked at soon."""
        self._behind[ref] = None
        if self._task is None and not self._closed and self.problem is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def waiting(self) -> int:
        """Messages that have not been looked at, of the sessions that are known to have some."""
        total = 0
        for ref in list(self._behind):
            head = await self._store.session(ref)
            if head is not None:
                shelf = self._shelves.get(ref)
                done = shelf.covered if shelf is not None and _fits(shelf, head) else _start(head) * CHUNK
                total += max(head.message_count - done, 0)
        return total

    async def look_up(self, ref: SessionRef) -> None:
        """Have the vectors of a session at hand, as far as there are any."""
        head = await self._store.session(ref)
        if head is not None:
            await self._shelf(head)

    def has(self, ref: SessionRef, position: int) -> bool:
        """Whether a message has a vector, as far as is at hand."""
        shelf = self._shelves.get(ref)
        return shelf is not None and shelf.has(position)

    def says(self, ref: SessionRef, position: int, key: int) -> bool:
        """Whether a message has a passage with this key, as far as is at hand."""
        shelf = self._shelves.get(ref)
        return shelf is not None and shelf.says(position, key)

    async def nearest(
        self,
        ref: SessionRef,
        text: str,
        *,
        limit: int,
        floor: float,
        first: int = 1,
        last: int | None = None,
        users: frozenset[int] = frozenset(),
    ) -> list[Near]:
        """The messages of a session that mean most nearly what a text does, as far as there are vectors."""
        if self.problem is not None or self._closed:
            return []
        head = await self._store.session(ref)
        if head is None:
            return []
        shelf = await self._shelf(head)
        if shelf.covered < head.message_count:
            self.note(ref)
        if not shelf.size:
            return []
        try:
            asked = await self._maker.question(text)
        except Exception:
            return []
        end = head.message_count if last is None else last
        return shelf.nearest(asked, limit=limit, floor=floor, first=first, last=end, users=users)

    async def close(self) -> None:
        """Leave what is not done; the next process goes on with it."""
        self._closed = True
        self._maker.close()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self) -> None:
        try:
            await asyncio.sleep(self._rest_s)
            while self._behind and not self._closed and self.problem is None:
                ref = next(iter(self._behind))
                try:
                    more = await self._advance(ref)
                except (StoreError, Stopped):
                    more = False
                except Exception:
                    more = False
                    if self.problem is None:
                        _log.exception("vectors of a session could not be made")
                if more:
                    self._behind.move_to_end(ref)
                else:
                    self._behind.pop(ref, None)
                    await asyncio.sleep(self._rest_s)
        finally:
            self._task = None

    async def _advance(self, ref: SessionRef) -> bool:
        """Make the vectors of one stretch; whether there are more to make."""
        head = await self._store.session(ref)
        if head is None:
            self._forget(ref)
            return False
        shelf = await self._shelf(head)
        await self._let_go(head, shelf)
        if shelf.covered >= head.message_count:
            self._spare.pop(ref, None)
            return False
        number = shelf.covered // CHUNK
        if await self._adopt(head, shelf, number):
            return shelf.covered < head.message_count
        first = number * CHUNK + 1
        last = min(first + CHUNK - 1, head.message_count)
        messages = await self._store.messages(ref, first, last)
        known = self._known(ref, shelf, number)
        reader = dialect(head.message_format).marked(Marks(self._store.secrets, head.root))
        reader = dialect(head.message_format).marked(Marks(self._store.secrets, head.root))
        stretch = await self._maker.stretch(reader, messages, first, last - first + 1, known)
        value = encoded(stretch, head.uid, head.revision)
        await self._store.write(SaveState(ref, f"{NAME}{number}", value, uid=head.uid))
        now = await self._store.session(ref)
        if now is None or not _fits(shelf, now):
            return True
        shelf.put(number, stretch)
        return shelf.covered < now.message_count

    async def _adopt(self, head: SessionHead, shelf: Shelf, number: int) -> bool:
        """Take what another process on the store has made of a stretch; whether that is more than is here."""
        found = decoded(await self._store.state(head.ref, f"{NAME}{number}"))
        if found is None or found[1:] != (head.uid, head.revision):
            return False
        own = shelf.stretch(number)
        if found[0].messages <= (own.messages if own is not None else 0):
            return False
        shelf.put(number, found[0])
        return True

    async def _shelf(self, head: SessionHead) -> Shelf:
        """The vectors of a session as it is now, as far as they are kept."""
        async with self._reading:
            before = self._shelves.get(head.ref)
            if before is not None and _fits(before, head):
                self._shelves.move_to_end(head.ref)
                return before
            shelf = Shelf(head.uid, head.revision, _start(head))
            old = await self._read(head, shelf)
            if before is not None and before.uid == head.uid:
                old |= before.known()
            if old:
                self._spare[head.ref] = old
            self._shelves[head.ref] = shelf
            self._shelves.move_to_end(head.ref)
            self._bound()
            return shelf

    async def _read(self, head: SessionHead, shelf: Shelf) -> dict[int, tuple[Stretch, int]]:
        """Fill a shelf with what is kept; what was kept of another revision is returned."""
        older = shelf.start - 1
        while older >= 0 and await self._store.state(head.ref, f"{NAME}{older}") is not None:
            await self._erase(head, older)
            older -= 1
        old: dict[int, tuple[Stretch, int]] = {}
        end = -(-head.message_count // CHUNK)
        number, whole = shelf.start, True
        while True:
            found = decoded(await self._store.state(head.ref, f"{NAME}{number}"))
            if found is None or found[1] != head.uid:
                return old
            stretch, _, revision = found
            if revision == head.revision and whole and number < end:
                shelf.put(number, stretch)
                whole = stretch.messages == CHUNK
            else:
                whole = False
                old |= stretch.known()
                if number >= end:
                    await self._erase(head, number)
            number += 1
            if number % _TOGETHER == 0:
                await asyncio.sleep(0)

    async def _let_go(self, head: SessionHead, shelf: Shelf) -> None:
        """Erase vectors of messages that are too old to have some."""
        for number in shelf.let_go(_start(head)):
            await self._erase(head, number)

    async def _erase(self, head: SessionHead, number: int) -> None:
        await self._store.write(SaveState(head.ref, f"{NAME}{number}", None, uid=head.uid))

    def _known(self, ref: SessionRef, shelf: Shelf, number: int) -> Known:
        """Vectors that need not be made anew: of this stretch, and of the same one in other sessions.

        A fork has the very messages of its parent there.
        """
        known: dict[int, tuple[Stretch, int]] = {}
        for other in self._shelves.values():
            stretch = other.stretch(number)
            if stretch is not None and other is not shelf:
                known |= stretch.known()
        known |= self._spare.get(ref, {})
        own = shelf.stretch(number)
        if own is not None:
            known |= own.known()
        return known

    def _bound(self) -> None:
        total = sum(shelf.size for shelf in self._shelves.values())
        while total > MOST_VECTORS and len(self._shelves) > 1:
            _, shelf = self._shelves.popitem(last=False)
            total -= shelf.size

    def _forget(self, ref: SessionRef) -> None:
        self._shelves.pop(ref, None)
        self._spare.pop(ref, None)


def _fits(shelf: Shelf, head: SessionHead) -> bool:
    return shelf.uid == head.uid and shelf.revision == head.revision


def _start(head: SessionHead) -> int:
    """The number of the first stretch that has vectors."""
    return max(head.message_count - MOST_MESSAGES, 0) // CHUNK
