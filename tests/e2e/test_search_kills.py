"""A process killed while it writes, erases and searches leaves an index that agrees with the messages."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sidecar.store.sqlite.upkeep.inspection import check

KILLS = int(os.environ.get("SEARCH_KILLS", "500"))
LIMIT_S = 60
_PROCESS = """
import asyncio, random, sys
from pathlib import Path
from sidecar.store import open_store
from sidecar.store.search import SearchQuery
from sidecar.store.sqlite import fts5, writer
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, Delete, Fork, Truncate

maker = random.Random(int(sys.argv[2]))
writer._PAUSE_S, writer._PORTION, fts5._SHARE, fts5._PAGES = 0.001, 8, 0, 2
REFS = [SessionRef("host", name) for name in "abcd"]

WORDS = "plum", "pear", "kumquat", "foo_bar.py", "\u82f9\u679c"

def said(**members):
    text = " ".join(maker.choice(WORDS) for _ in range(30))
    return NewMessage(body=text.encode(), role="user", opens_turn=True, **members)

async def write(store):
    while True:
        ref, other = maker.sample(REFS, 2)
        new = [said() for _ in range(maker.randint(1, 40))]
        await store.write(Append(ref, new, message_format="openai"))
        found = await store.messages(ref, 1, 1 << 30)
        chosen = maker.choice(found).message_id
        step = maker.random()
        if step < 0.15:
            await store.write(Truncate(ref, chosen))
        elif step < 0.3:
            late = said(after=maker.randint(0, len(found)))
            await store.write(Append(ref, [late], message_format="openai"))
        elif step < 0.45:
            await store.write(Delete(other))
            await store.write(Fork(ref, other, chosen))
        elif step < 0.6:
            await store.write(Delete(ref))
        await asyncio.sleep(maker.random() * 0.02)

async def search(store):
    while True:
        kind = maker.choice(("words", "literal", "regex"))
        await store.search_sessions("host", SearchQuery(text=maker.choice(("plum", "umqua")), kind=kind))
        await store.search(maker.choice(REFS), SearchQuery(text="pear", kind=kind))

async def main():
    store = open_store("sqlite", Path(sys.argv[1]))
    await store.open()
    print("ready", flush=True)
    await asyncio.gather(write(store), search(store))

asyncio.run(main())
"""


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_index_and_messages_agree_after_every_kill(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    maker = random.Random(1)
    for number in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS, str(path), str(number)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(maker.random() * 0.5)
            process.kill()
        assert process.wait(LIMIT_S) == -9
        wrong = [finding for finding in check(path, lambda *_: None) if not finding.ok]
        assert wrong == [], f"after kill {number}"
