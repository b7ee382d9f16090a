"""Makes vectors in the background, on a thread of lower priority."""

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

from sidecar.semantic.model import DIMENSIONS, EmbeddingModel
from sidecar.semantic.passages import Spoken, spoken
from sidecar.semantic.vectors import Row, Stretch, stretch_of

if TYPE_CHECKING:
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
        self, message_format: str, messages: Sequence[StoredMessage], first: int, count: int, known: Known
    ) -> Stretch:
        """The vectors of the messages from the position `first` on, of which `known` ones are not made anew.

        Raises:
            Stopped: the sidecar is closing.
            Exception: the model failed; `problem` says why.
        """
        loop = asyncio.get_running_loop()
        # On the slow thread it would take so long that questions wait for it.
        await loop.run_in_executor(self._questions, self._loaded)
        return await loop.run_in_executor(
            self._messages, self._make, message_format, messages, first, count, known
        )

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
        self, message_format: str, messages: Sequence[StoredMessage], first: int, count: int, known: Known
    ) -> Stretch:
        import numpy

        passages = list(spoken(message_format, messages, first))
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
