"""Makes vectors behind the store, and knows which messages have them."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.marks import Marks
from sidecar.recall.passages import passages
from sidecar.semantic.model import DIMENSIONS, EmbeddingModel
from sidecar.semantic.vectors import (
    CHUNK,
    MOST_MESSAGES,
    Chunk,
    Near,
    Row,
    VectorTable,
    chunk_of,
    decoded,
    encoded,
)
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreError
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import DERIVED, SaveState, Write

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.semantic.model import Floats
    from sidecar.store.stored import StoredMessage


MOST_PARTS = 4
"""Passages of one message, from its beginning."""
SHORTEST = 12
"""Characters below which a text says too little to have a place of its own."""
MOST_FOREIGN = 0.3
"""Share of letters beyond Latin ones from which on the model does not know what a text says."""
_LAST_LATIN = "\u024f"


class Passage(NamedTuple):
    """A passage that is to have a vector."""

    offset: int
    """Which of the messages, from 0."""
    user: int
    """As in `Kept.users`."""
    text: str
    key: int
    """Stands for the text."""


def spoken_passages(dialect: Dialect, messages: Sequence[StoredMessage], first: int) -> Iterator[Passage]:
    """What was said in some messages, in passages; positions count from `first`.

    Calls and results of tools are found by their words: names, paths and ids mean nothing to the model.
    """
    for message in messages:
        if message.heartbeat or message.role not in ("user", "assistant"):
            continue
        try:
            reading = dialect.read(message.body)
        except MessageError:
            continue
        if reading.results or reading.calls:
            continue
        user = 1 if message.role == "user" else 2
        for passage in passages(reading.said.strip())[:MOST_PARTS]:
            if is_understood(passage):
                yield Passage(message.position - first, user, passage, key_of(passage))


def is_understood(text: str) -> bool:
    """Whether the model knows what a text says: it learned English, and has no signs for most others."""
    if len(text.strip()) < SHORTEST:
        return False
    if text.isascii():
        return True
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(letter > _LAST_LATIN for letter in letters)
    return bool(letters) and foreign <= MOST_FOREIGN * len(letters)


def key_of(text: str) -> int:
    """Stands for a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


LOWER = 10
"""How far below the sidecar's the priority of the thread for messages is."""
QUESTIONS = 64
"""Questions whose vectors are kept, since several engines and budgets ask the same."""

Known = Mapping[int, tuple[Chunk, int]]

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

    async def chunk(
        self, dialect: Dialect, messages: Sequence[StoredMessage], first: int, count: int, known: Known
    ) -> Chunk:
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
    ) -> Chunk:
        import numpy

        passages = list(spoken_passages(dialect, messages, first))
        fresh: dict[int, int] = {}
        texts: list[str] = []
        for passage in passages:
            if passage.key not in known and passage.key not in fresh:
                fresh[passage.key] = len(texts)
                texts.append(passage.text)
        vectors = numpy.zeros((len(texts), DIMENSIONS), numpy.float32)
        for number, text in enumerate(texts):
            vectors[number] = self._embed_one(text)
        return chunk_of(count, [_row(passage) for passage in passages], fresh, vectors, known)

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


def _row(passage: Passage) -> Row:
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
"""What the names of chunks in the store begin with; their number follows."""
_TOGETHER = 16
"""Chunks that are read before others get their turn on the loop."""


class SemanticIndex:
    """Vectors of the newest messages of each session; those of no session are made before they are asked for.

    Nothing waits for it: what has no vector yet is found by its words.
    """

    def __init__(self, store: SessionStore, *, rest_s: float = REST_S) -> None:
        self._store = store
        self._rest_s = rest_s
        self._maker = VectorMaker()
        self._tables: OrderedDict[SessionRef, VectorTable] = OrderedDict()
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
                table = self._tables.get(ref)
                done = table.covered if table is not None and _fits(table, head) else _start(head) * CHUNK
                total += max(head.message_count - done, 0)
        return total

    async def look_up(self, ref: SessionRef) -> None:
        """Have the vectors of a session at hand, as far as there are any."""
        head = await self._store.session(ref)
        if head is not None:
            await self._table(head)

    def has(self, ref: SessionRef, position: int) -> bool:
        """Whether a message has a vector, as far as is at hand."""
        table = self._tables.get(ref)
        return table is not None and table.has(position)

    def says(self, ref: SessionRef, position: int, key: int) -> bool:
        """Whether a message has a passage with this key, as far as is at hand."""
        table = self._tables.get(ref)
        return table is not None and table.says(position, key)

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
        table = await self._table(head)
        if table.covered < head.message_count:
            self.note(ref)
        if not table.size:
            return []
        try:
            asked = await self._maker.question(text)
        except Exception:
            return []
        end = head.message_count if last is None else last
        return table.nearest(asked, limit=limit, floor=floor, first=first, last=end, users=users)

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
        """Make the vectors of one chunk; whether there are more to make."""
        head = await self._store.session(ref)
        if head is None:
            self._forget(ref)
            return False
        table = await self._table(head)
        await self._let_go(head, table)
        if table.covered >= head.message_count:
            self._spare.pop(ref, None)
            return False
        number = table.covered // CHUNK
        if await self._adopt(head, table, number):
            return table.covered < head.message_count
        first = number * CHUNK + 1
        last = min(first + CHUNK - 1, head.message_count)
        messages = await self._store.messages(ref, first, last)
        known = self._known(ref, table, number)
        reader = dialect(head.message_format).marked(Marks(self._store.secrets, head.root))
        reader = dialect(head.message_format).marked(Marks(self._store.secrets, head.root))
        chunk = await self._maker.chunk(reader, messages, first, last - first + 1, known)
        value = encoded(chunk, head.uid, head.revision)
        await self._store.write(SaveState(ref, f"{NAME}{number}", value, uid=head.uid))
        now = await self._store.session(ref)
        if now is None or not _fits(table, now):
            return True
        table.put(number, chunk)
        return table.covered < now.message_count

    async def _adopt(self, head: SessionHead, table: VectorTable, number: int) -> bool:
        """Take what another process on the store has made of a chunk; whether that is more than is here."""
        found = decoded(await self._store.state(head.ref, f"{NAME}{number}"))
        if found is None or found[1:] != (head.uid, head.revision):
            return False
        own = table.chunk(number)
        if found[0].messages <= (own.messages if own is not None else 0):
            return False
        table.put(number, found[0])
        return True

    async def _table(self, head: SessionHead) -> VectorTable:
        """The vectors of a session as it is now, as far as they are kept."""
        async with self._reading:
            before = self._tables.get(head.ref)
            if before is not None and _fits(before, head):
                self._tables.move_to_end(head.ref)
                return before
            table = VectorTable(head.uid, head.revision, _start(head))
            old = await self._read(head, table)
            if before is not None and before.uid == head.uid:
                old |= before.known()
            if old:
                self._spare[head.ref] = old
            self._tables[head.ref] = table
            self._tables.move_to_end(head.ref)
            self._bound()
            return table

    async def _read(self, head: SessionHead, table: VectorTable) -> dict[int, tuple[Chunk, int]]:
        """Fill a table with what is kept; what was kept of another revision is returned."""
        older = table.start - 1
        while older >= 0 and await self._store.state(head.ref, f"{NAME}{older}") is not None:
            await self._erase(head, older)
            older -= 1
        old: dict[int, tuple[Chunk, int]] = {}
        end = -(-head.message_count // CHUNK)
        number, whole = table.start, True
        while True:
            found = decoded(await self._store.state(head.ref, f"{NAME}{number}"))
            if found is None or found[1] != head.uid:
                return old
            chunk, _, revision = found
            if revision == head.revision and whole and number < end:
                table.put(number, chunk)
                whole = chunk.messages == CHUNK
            else:
                whole = False
                old |= chunk.known()
                if number >= end:
                    await self._erase(head, number)
            number += 1
            if number % _TOGETHER == 0:
                await asyncio.sleep(0)

    async def _let_go(self, head: SessionHead, table: VectorTable) -> None:
        """Erase vectors of messages that are too old to have some."""
        for number in table.let_go(_start(head)):
            await self._erase(head, number)

    async def _erase(self, head: SessionHead, number: int) -> None:
        await self._store.write(SaveState(head.ref, f"{NAME}{number}", None, uid=head.uid))

    def _known(self, ref: SessionRef, table: VectorTable, number: int) -> Known:
        """Vectors that need not be made anew: of this chunk, and of the same one in other sessions.

        A fork has the very messages of its parent there.
        """
        known: dict[int, tuple[Chunk, int]] = {}
        for other in self._tables.values():
            chunk = other.chunk(number)
            if chunk is not None and other is not table:
                known |= chunk.known()
        known |= self._spare.get(ref, {})
        own = table.chunk(number)
        if own is not None:
            known |= own.known()
        return known

    def _bound(self) -> None:
        total = sum(table.size for table in self._tables.values())
        while total > MOST_VECTORS and len(self._tables) > 1:
            _, table = self._tables.popitem(last=False)
            total -= table.size

    def _forget(self, ref: SessionRef) -> None:
        self._tables.pop(ref, None)
        self._spare.pop(ref, None)


def _fits(table: VectorTable, head: SessionHead) -> bool:
    return table.uid == head.uid and table.revision == head.revision


def _start(head: SessionHead) -> int:
    """The number of the first chunk that has vectors."""
    return max(head.message_count - MOST_MESSAGES, 0) // CHUNK
