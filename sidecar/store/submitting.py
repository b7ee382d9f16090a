"""Waiting for a write as a coroutine, on top of a store's `submit` and `withdraw`."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sidecar.store.errors import StoreUnavailable, WriteWithdrawn
from sidecar.store.writes import Write


class Submitting:
    """What every kind of store shares of `SessionStore`."""

    def __init__(self) -> None:
        self.gather: Callable[[], AbstractContextManager[object]] = nullcontext
        """See `SessionStore`."""
        self.watch: Callable[[list[Write]], object] | None = None
        """Called on the loop with the writes of each batch, when their submitters have been told."""

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        raise NotImplementedError

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        raise NotImplementedError

    def tell(self, writes: list[Write]) -> None:
        """Tell the submitters of a batch that it is done."""
        with self.gather():
            run_done(writes)
        if self.watch is not None:
            self.watch(writes)

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
