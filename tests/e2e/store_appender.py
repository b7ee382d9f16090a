"""Appends without end to the store that is named, and prints what was acknowledged.

Usage: store_appender.py FILE|CONNECTION PREFIX [COUNT [SESSIONS]]

Every acknowledged message is a line `session message_id body` on stdout, written before anything else.
Now and then it forks, truncates, inserts and deletes sessions of its own, which are not printed.
"""

import asyncio
import os
import sys
from pathlib import Path

from sidecar.store import open_store
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, Delete, Fork, Truncate

IN_FLIGHT = 24
SESSIONS = 5


async def appends(target: str, prefix: str, count: int, sessions: int) -> None:
    """Keep some appends in flight until `count` are done."""
    shared = "dbname=" in target
    store = open_store("postgres", url=target) if shared else open_store("sqlite", Path(target))
    await store.open()
    numbers = iter(range(count))

    async def keep_appending() -> None:
        for number in numbers:
            session = f"s{number % sessions}"
            body = f"{prefix}-{number}"
            name = f"id-{body}" if number % 3 else None
            padding = " " * (number * 131 % 4000)
            message = NewMessage(
                body=(body + padding).encode(), role="user", opens_turn=True, message_id=name
            )
            write = Append(SessionRef("kill", session), [message], message_format="openai")
            result = await store.write(write)
            os.write(1, f"{session} {result.items[0].message_id} {body}\n".encode())
            if number % 50 == 0:
                await rewrite(f"{prefix}-{number}")

    async def rewrite(name: str) -> None:
        parent, child = SessionRef("other", name), SessionRef("other", f"{name}-fork")
        messages = [NewMessage(body=b"x" * 700, role="user", opens_turn=True) for _ in range(5)]
        items = (await store.write(Append(parent, messages, message_format="openai"))).items
        await store.write(Fork(parent, child, items[3].message_id))
        messages[0].after = 1
        await store.write(Append(parent, messages[:1], message_format="openai"))
        await store.write(Truncate(parent, items[0].message_id))
        await store.write(Delete(parent))

    await asyncio.gather(*(keep_appending() for _ in range(IN_FLIGHT)))
    await store.close()


if __name__ == "__main__":
    limit = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 40
    sessions = int(sys.argv[4]) if len(sys.argv) > 4 else SESSIONS
    asyncio.run(appends(sys.argv[1], sys.argv[2], limit, sessions))
