"""Flushes the buffer of a store, or claims some of it and waits to be killed.

Usage: buffer_flusher.py FILE|CONNECTION flush|claim

Every episode that it flushed (or claimed) is a line on stdout.
"""

import asyncio
import os
import sys
from pathlib import Path

from sidecar.store import open_buffer, open_store

LEASE_MS = 1_000


async def flush(target: str, mode: str) -> None:
    """Claim and delete until nothing is left; with `claim` stop before deleting."""
    shared = "dbname=" in target
    store = open_store("postgres", url=target) if shared else open_store("sqlite", Path(target))
    await store.open()
    buffer = open_buffer(store, "host", "recall")
    while episodes := await buffer.claim(10, LEASE_MS if mode == "claim" else 3_600_000):
        os.write(1, b"".join(episode.payload + b"\n" for episode in episodes))
        if mode == "claim":
            await asyncio.Event().wait()
        await buffer.delete_by_rowids([episode.rowid for episode in episodes])
    await store.close()


if __name__ == "__main__":
    asyncio.run(flush(sys.argv[1], sys.argv[2]))
