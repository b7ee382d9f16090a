"""Waiting for writes, and going on with long ones, on top of a store's `submit` and `withdraw`."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sidecar.store.erasure import EXPIRED, STEP, Expire
from sidecar.store.errors import StoreError, StoreUnavailable, WriteWithdrawn
from sidecar.store.stored import SessionHead
from sidecar.store.writes import Write

_ERASES = {"delete", "end_spawn", "roll_back_spawn", "sweep_spawns"}
"""Writes that may leave a session to be erased in steps."""


class Submitting:
    """What every kind of store shares of `SessionStore`."""

    def __init__(self) -> None:
        self.gather: Callable[[], AbstractContextManager[object]] = nullcontext
        """See `SessionStore`."""
        self.watch: Callable[[list[Write]], object] | None = None
        """Called on the loop with the writes of each batch, when their submitters have been told."""
        self._erasing: asyncio.Task[None] | None = None
        self._erase_more = False

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        raise NotImplementedError

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        raise NotImplementedError

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None = None
    ) -> tuple[list[SessionHead], str | None]:
        """See `SessionStore`."""
        raise NotImplementedError

    def tell(self, writes: list[Write]) -> None:
        """Tell the submitters of a batch that it is done."""
        with self.gather():
            run_done(writes)
        if any(write.verb in _ERASES for write in writes):
            self.erase_rest()
        if self.watch is not None:
            self.watch(writes)

    def erase_rest(self) -> None:
        """Begin to erase what is left of sessions that are set aside, unless that is under way."""
        self._erase_more = True
        if self._erasing is None or self._erasing.done():
            self._erasing = asyncio.ensure_future(self._erase_in_steps())

    async def erased(self) -> None:
        """Return once nothing is left of sessions that are set aside."""
        if self._erasing is not None:
            await asyncio.wait([self._erasing])

    async def _erase_in_steps(self) -> None:
        """Other writes go between the steps. What a fault leaves is gone on with after the next erasure."""
        try:
            while self._erase_more:
                self._erase_more = False
                heads, _ = await self.sessions(EXPIRED, 1, None)
                for head in heads:
                    left: SessionHead | None = head
                    while left is not None:
                        left = (await self.write(Expire(left, most=STEP))).rest
                    self._erase_more = True
        except StoreError:
            return

    async def write(self, write: Write) -> Any:
        """See `SessionStore`.

        Raises:
            StoreError: the write was refused or failed.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.submit(write, lambda _: future.set_result(None))
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError:
                if self.withdraw(write):
                    raise
                _put_off_cancellation()
        if write.error is not None:
            raise write.error
        return write.result


def mark_withdrawn(write: Write) -> None:
    """Note on a write that it will have no effect."""
    write.withdrawn = True
    write.error = WriteWithdrawn("the write was cancelled before it began")


def refuse(write: Write) -> None:
    """Complete a write that came while the store is not open."""
    write.started = True
    write.error = StoreUnavailable("the store is not open")
    asyncio.get_running_loop().call_soon(run_done, [write])


def run_done(writes: list[Write]) -> None:
    """Tell the submitters, in order; one that fails does not keep it from the others."""
    for write in writes:
        done = write.done
        if done is None:
            continue
        try:
            done(write)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"the callback of the write {write.verb!r} failed", "exception": error}
            )


def _put_off_cancellation() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


_SILENT_S = 60.0
"""How long faults of a kind are counted after one of them was logged."""
_DRIVERS = ("apsw", "psycopg", "sidecar")


class FaultLog:
    """Logs faults of the store by a line each, and repeated ones by their number; used on one thread."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[float, int]] = {}

    def report(self, error: Exception) -> None:
        """Log the fault, unless its kind was logged lately; one that nobody foresaw with its traceback."""
        import logging

        kind, now = type(error).__name__, time.monotonic()
        since, more = self._said.get(kind, (0.0, 0))
        if since and now - since < _SILENT_S:
            self._said[kind] = (since, more + 1)
            return
        self._said[kind] = (now, 0)
        foreseen = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _DRIVERS
        text = " ".join(str(error).split())[:300]
        logging.getLogger(__name__).error(
            "the store failed: %s: %s%s",
            kind,
            text,
            f"; {more} more since the last line" if more else "",
            exc_info=None if foreseen else error,
        )

    def close(self) -> None:
        """Log how many were passed over."""
        import logging

        for kind, (_, more) in self._said.items():
            if more:
                logging.getLogger(__name__).error("the store failed %d more times: %s", more, kind)
        self._said.clear()
