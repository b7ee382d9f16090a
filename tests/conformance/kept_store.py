"""A store in memory whose data outlast it, so that every check of the suite can be run on it, and broken."""

import asyncio
import copy
from collections.abc import Callable

import pytest

from sidecar.store.contract import SessionStore
from sidecar.store.search import Extract
from tests.conformance.dictionary.store import MemoryStore
from tests.conformance.dictionary.tables import MemoryTables

Breaks = Callable[[pytest.MonkeyPatch], None]
"""Breaks the store in one way, until the patch is undone."""


class KeptStore(MemoryStore):
    """Keeps its sessions in tables that belong to the place."""

    def __init__(self, tables: MemoryTables, extract: Extract) -> None:
        super().__init__(extract)
        self.kept = tables

    async def open(self) -> None:
        """See `SessionStore`."""
        self._loop = asyncio.get_running_loop()
        self._tables = self.opened(self.kept)

    def opened(self, tables: MemoryTables) -> MemoryTables:
        """What an opened store works on."""
        return tables


class KeptPlace:
    """Tables in memory that several stores may use, one after the other or at once."""

    capabilities = ("durable", "shared", "search", "regex", "buffer")

    def __init__(self) -> None:
        self.tables = MemoryTables()

    def store(self, extract: Extract) -> SessionStore:
        """See `StorePlace`."""
        return KeptStore(self.tables, extract)

    def remove(self) -> None:
        """See `StorePlace`."""


def copied(tables: MemoryTables) -> MemoryTables:
    """Tables of one's own that hold the same."""
    twin = MemoryTables()
    state = {name: value for name, value in vars(tables).items() if name != "buffers"}
    twin.__dict__.update(copy.deepcopy(state))
    held = {name: value for name, value in vars(tables.buffers).items() if name != "_now_ms"}
    twin.buffers.__dict__.update(copy.deepcopy(held))
    return twin
