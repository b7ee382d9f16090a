"""Engines that are broken in many ways, behind one id: the session's name says which way.

A session `bad <kind> <number>` is answered in that way; every other session as it should be.
"""

import asyncio
import contextlib
import ctypes
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, cast

from sidecar.engine import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Entry,
    Kept,
    Made,
    PreflightOutcome,
    Session,
    StoringEngine,
    keep_window,
)


def _may_gain_privileges() -> bool:
    return "NoNewPrivs:\t1" not in Path("/proc/self/status").read_text(encoding="ascii")


def _reached(places: Iterable[Path | str]) -> list[str]:
    found: list[str] = []
    for place in places:
        with contextlib.suppress(OSError), Path(place).open("rb"):
            found.append(str(place))
    return found


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class Gallery(StoringEngine):
    """Misbehaves in `assemble`, `compact` or `preflight`, as the session's name asks for."""

    info = EngineInfo(id="gallery", name="Gallery of broken engines", version="1")

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """The newest turns that fit, or nonsense."""
        kind = _kind(session)
        if kind is not None and (broken := getattr(self, f"assemble_{kind}", None)) is not None:
            return cast(Assembly, await broken(session, request))
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)])

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Nothing to do, or trouble."""
        kind = _kind(session)
        if kind is not None and (broken := getattr(self, f"compact_{kind}", None)) is not None:
            return cast(CompactOutcome, await broken(session))
        return CompactOutcome(compacted=False, reason="there is nothing to do")

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Always fits, or numbers that are none."""
        numbers: dict[str | None, Any] = {"nan": math.nan, "negative": -5, "text": "many"}
        estimate = numbers.get(_kind(session), 1)
        return PreflightOutcome(fits=True, estimated_tokens=estimate, action="none")

    # Raising

    async def assemble_raises(self, session: Session, request: AssembleRequest) -> NoReturn:
        raise ValueError(f"no such thing in {__file__}")

    async def assemble_unprintable(self, session: Session, request: AssembleRequest) -> NoReturn:
        raise _Unprintable

    async def assemble_exits(self, session: Session, request: AssembleRequest) -> NoReturn:
        sys.exit(3)

    async def assemble_interrupts(self, session: Session, request: AssembleRequest) -> NoReturn:
        raise KeyboardInterrupt

    async def assemble_cancels(self, session: Session, request: AssembleRequest) -> NoReturn:
        raise asyncio.CancelledError

    async def assemble_generator_exit(self, session: Session, request: AssembleRequest) -> NoReturn:
        raise GeneratorExit

    async def assemble_recurses(self, session: Session, request: AssembleRequest) -> Assembly:
        return await self.assemble_recurses(session, request)

    async def assemble_recurses_through_host(self, session: Session, request: AssembleRequest) -> Assembly:
        await session.timeline.tail(10)
        return await self.assemble_recurses_through_host(session, request)

    async def assemble_thread_exits(self, session: Session, request: AssembleRequest) -> object:
        return await self.host.run_blocking(lambda: sys.exit(4))

    async def assemble_hangs(self, session: Session, request: AssembleRequest) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError

    # Nonsense

    async def assemble_dict(self, session: Session, request: AssembleRequest) -> object:
        return {"items": []}

    async def assemble_none(self, session: Session, request: AssembleRequest) -> object:
        return None

    async def assemble_text_items(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=cast(Any, "messages"))

    async def assemble_strange_items(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=cast(Any, [1, object()]))

    async def assemble_strange_text(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=[], system_prompt_addition=cast(Any, object()))

    async def assemble_foreign(self, session: Session, request: AssembleRequest) -> object:
        entry = (await session.timeline.tail(10)).entries[-1]
        cast(Any, entry).message_id = "of another session"
        return Assembly(items=[Kept(entry)])

    async def assemble_endless_text(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=[_made("word " * 2_000_000)])

    # Careless, which the guard mends

    async def assemble_over_budget(self, session: Session, request: AssembleRequest) -> object:
        entries = (await session.timeline.tail(1 << 30)).entries
        return Assembly(items=[_made("word " * 3_000), *map(Kept, entries)])

    async def assemble_breaks_pairs(self, session: Session, request: AssembleRequest) -> object:
        entries = (await session.timeline.tail(1 << 30)).entries
        return Assembly(items=[Kept(entry) for entry in entries if not entry.reading.results])

    async def assemble_orphans(self, session: Session, request: AssembleRequest) -> object:
        entries = (await session.timeline.tail(1 << 30)).entries
        return Assembly(items=[Kept(entry) for entry in entries if not entry.reading.calls])

    async def assemble_duplicates(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)] * 3)

    async def assemble_backwards(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=[Kept(entry) for entry in reversed(await _fitting(session, request))])

    async def assemble_empty(self, session: Session, request: AssembleRequest) -> object:
        return Assembly(items=[])

    async def assemble_mutates(self, session: Session, request: AssembleRequest) -> object:
        entries = await _fitting(session, request)
        for entry in entries:
            entry.raw = b"no JSON"
            entry.role = "system"
            entry.turn_id = "t999"
        return Assembly(items=[Kept(entry) for entry in entries])

    async def assemble_surrogates(self, session: Session, request: AssembleRequest) -> object:
        kept = [Kept(entry) for entry in await _fitting(session, request)]
        return Assembly(items=[_made("half a \ud83d pair"), *kept])

    async def assemble_prints(self, session: Session, request: AssembleRequest) -> object:
        print("Hello from the engine", flush=True)
        sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":null}\n')
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)])

    async def assemble_writes_fd_1(self, session: Session, request: AssembleRequest) -> object:
        os.write(1, b'Content-Length: 2\r\n\r\n{}{"jsonrpc":"2.0"}\n')
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)])

    async def assemble_reads_stdin(self, session: Session, request: AssembleRequest) -> object:
        sys.stdin.read()
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)])

    async def assemble_forks(self, session: Session, request: AssembleRequest) -> object:
        if not os.fork():
            os._exit(0)
        return Assembly(items=[Kept(entry) for entry in await _fitting(session, request)])

    # Odd outcomes of a compaction

    async def compact_bad_json(self, session: Session) -> CompactOutcome:
        return CompactOutcome(compacted=True, details=b'{"half": ')

    async def compact_nan(self, session: Session) -> CompactOutcome:
        return CompactOutcome(compacted=True, tokens_before=cast(Any, math.nan))

    async def compact_negative(self, session: Session) -> CompactOutcome:
        return CompactOutcome(compacted=True, tokens_before=-1)

    async def compact_surrogates(self, session: Session) -> CompactOutcome:
        return CompactOutcome(compacted=True, summary="half a \udc00 pair")

    async def compact_unserialisable(self, session: Session) -> CompactOutcome:
        return CompactOutcome(compacted=True, summary=cast(Any, object()))

    async def compact_strange_state(self, session: Session) -> CompactOutcome:
        await session.save_state("x", cast(Any, object()))
        return CompactOutcome(compacted=True)

    # Curious

    async def compact_looks_around(self, session: Session) -> CompactOutcome:
        """Tells what it has reached of what is its sidecar's alone; the last message says where that is."""
        said = (await session.timeline.tail(1000)).entries[-1].reading.text
        sidecar = Path(f"/proc/{os.getppid()}")
        reached = [name for name in os.environ if "SECRET" in name]
        reached += _reached([*said.split(), sidecar / "environ", sidecar / "mem"])
        with contextlib.suppress(OSError):
            reached += _reached(
                each for each in (sidecar / "fd").iterdir() if "state" in str(each.readlink())
            )
        with contextlib.suppress(OSError), tempfile.TemporaryFile():
            reached += ["privileges"] if _may_gain_privileges() else []
            return CompactOutcome(compacted=False, reason=" ".join(reached) or "nothing")
        return CompactOutcome(compacted=False, reason="no room for files of its own")

    async def compact_tells_secrets(self, session: Session) -> NoReturn:
        raise ValueError("refused: " + os.environ["GALLERY_SECRET"] + "x" * 100_000)

    # Never coming back

    async def compact_hangs(self, session: Session) -> CompactOutcome:
        await asyncio.Event().wait()
        raise AssertionError

    async def compact_takes_a_while(self, session: Session) -> CompactOutcome:
        await asyncio.sleep(2)
        return CompactOutcome(compacted=False, reason=f"done by {os.getpid()}")

    async def compact_stops_itself(self, session: Session) -> CompactOutcome:
        os.kill(os.getpid(), signal.SIGSTOP)
        await asyncio.Event().wait()
        raise AssertionError

    async def compact_starts_others(self, session: Session) -> CompactOutcome:
        for _ in range(5):
            await asyncio.create_subprocess_exec("sleep", "3600")
        os._exit(9)

    async def compact_floods_stderr(self, session: Session) -> CompactOutcome:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            os.write(2, b"flood\n" * 1000)
        return CompactOutcome(compacted=False, reason="flooded")

    async def compact_floods_every_descriptor(self, session: Session) -> CompactOutcome:
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(fd, b"garbage " * 1000)
        await asyncio.Event().wait()
        raise AssertionError

    async def compact_allocates_in_copies(self, session: Session) -> CompactOutcome:
        for _ in range(8):
            if not os.fork():
                break
        kept: list[bytearray] = []
        while True:
            kept.append(bytearray(b"x" * (8 << 20)))

    async def compact_swallows_cancelling(self, session: Session) -> CompactOutcome:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return CompactOutcome(compacted=True)

    async def compact_keeps_busy(self, session: Session) -> CompactOutcome:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            pass
        return CompactOutcome(compacted=True)

    async def compact_recurses_in_tasks(self, session: Session) -> CompactOutcome:
        return await asyncio.create_task(self.compact_recurses_in_tasks(session))

    # Taking the process along

    async def compact_allocates(self, session: Session) -> CompactOutcome:
        kept: list[bytearray] = []
        while True:
            kept.append(bytearray(b"x" * (16 << 20)))

    async def compact_ends_process(self, session: Session) -> CompactOutcome:
        os._exit(7)

    async def compact_kills_process(self, session: Session) -> CompactOutcome:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    async def compact_crashes(self, session: Session) -> CompactOutcome:
        ctypes.string_at(0)
        raise AssertionError

    async def compact_stops_loop(self, session: Session) -> CompactOutcome:
        asyncio.get_running_loop().stop()
        await asyncio.Event().wait()
        raise AssertionError

    async def compact_closes_everything(self, session: Session) -> CompactOutcome:
        os.closerange(0, 64)
        return CompactOutcome(compacted=True)

    async def compact_forks_on(self, session: Session) -> CompactOutcome:
        os.fork()
        return CompactOutcome(compacted=True)


def _kind(session: Session) -> str | None:
    first, _, rest = session.session_id.partition(" ")
    return rest.partition(" ")[0] if first == "bad" else None


async def _fitting(session: Session, request: AssembleRequest) -> list[Entry]:
    """The newest turns that fit."""
    window = await keep_window(session.timeline, request.budget, None)
    return [*window.system, *window.entries]


def _made(text: str) -> Made:
    return Made(role="user", kind="summary", ref="r", text=text, timestamp_ms=0)
