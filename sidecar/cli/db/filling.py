"""A new store that is filled from plain code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from sidecar.store import open_store
from sidecar.store.lines import Owner
from sidecar.store.refilling import refill
from sidecar.store.stored import StoredMessage


class Filling:
    """Open while it is entered; everything put in is on the disk when it is left."""

    def __init__(self, path: Path) -> None:
        self._runner = asyncio.Runner()
        self._store = open_store("sqlite", path)

    def __enter__(self) -> Filling:
        self._runner.run(self._store.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        self._runner.run(self._store.close())
        self._runner.close()

    def put(self, owner: Owner, messages: Iterator[StoredMessage]) -> None:
        """Keep the messages of one session."""
        self._runner.run(refill(self._store, owner, messages))
