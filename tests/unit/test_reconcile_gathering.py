"""Engines that see each message: the store still accepts all of them or none."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.server.engines.session import EngineSession
from sidecar.server.sessions.intake import Slot, ingest_together
from sidecar.store.stored import NewMessage
from sidecar.store.writes import AppendResult

LIMIT_S = 10


class Handle:
    """What the gathering knows of a session: its slot."""

    slot: Slot | None = None


def message(text: str, after: int | None = None) -> NewMessage:
    return NewMessage(body=text.encode(), role="user", opens_turn=True, after=after)


def gathered(
    engine: Callable[[Slot, bytes], Awaitable[IngestOutcome]],
    *messages: NewMessage,
    store: Callable[[list[NewMessage]], Awaitable[Any]] | None = None,
) -> tuple[list[IngestOutcome], list[list[NewMessage]]]:
    """The outcomes, and the arguments of each call to the store."""
    stored: list[list[NewMessage]] = []

    async def keep(given: list[NewMessage]) -> AppendResult:
        stored.append(given)
        if store is not None:
            await store(given)
        return cast(AppendResult, None)

    async def ingest(session: EngineSession, incoming: IncomingMessage) -> IngestOutcome:
        slot = session.slot
        assert slot is not None
        return await engine(slot, incoming.raw)

    async def run() -> list[IngestOutcome]:
        work = ingest_together(
            messages,
            lambda: cast(EngineSession, Handle()),
            ingest,
            keep,
            lambda given, index, _: IngestOutcome(ingested=True, message_id=f"{given.body.decode()}-{index}"),
        )
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(run()), stored


async def store_it(slot: Slot, raw: bytes) -> IngestOutcome:
    return await slot.store(message(raw.decode()))


def test_all_messages_are_stored_in_one_step_and_in_order() -> None:
    outcomes, stored = gathered(store_it, message("a"), message("b"), message("c"))
    assert [[m.body for m in given] for given in stored] == [[b"a", b"b", b"c"]]
    assert [outcome.message_id for outcome in outcomes] == ["a-0", "b-1", "c-2"]


def test_a_message_keeps_the_place_that_it_was_given() -> None:
    _, stored = gathered(store_it, message("a", after=3), message("b"))
    assert [m.after for m in stored[0]] == [3, None]


def test_an_engine_may_leave_messages_out() -> None:
    async def every_second(slot: Slot, raw: bytes) -> IngestOutcome:
        return IngestOutcome(ingested=False) if raw == b"b" else await store_it(slot, raw)

    outcomes, stored = gathered(every_second, message("a"), message("b"), message("c"))
    assert [m.body for m in stored[0]] == [b"a", b"c"]
    assert [outcome.message_id for outcome in outcomes] == ["a-0", "", "c-1"]


def test_an_engine_may_think_before_it_stores() -> None:
    async def slow_first(slot: Slot, raw: bytes) -> IngestOutcome:
        for _ in range(20 if raw == b"a" else 0):
            await asyncio.sleep(0)
        return await store_it(slot, raw)

    _, stored = gathered(slow_first, message("a"), message("b"))
    assert [m.body for m in stored[0]] == [b"a", b"b"]


def test_nothing_is_stored_where_the_engine_fails_at_one_message() -> None:
    kept: list[object] = []

    async def keep(given: list[NewMessage]) -> None:
        kept.append(given)

    async def fails_at_c(slot: Slot, raw: bytes) -> IngestOutcome:
        if raw == b"c":
            raise ValueError("this one not")
        return await store_it(slot, raw)

    with pytest.raises(ValueError, match="this one not"):
        gathered(fails_at_c, message("a"), message("b"), message("c"), store=keep)
    assert kept == []


def test_a_store_that_refuses_reaches_the_caller() -> None:
    async def refuse(given: list[NewMessage]) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        gathered(store_it, message("a"), store=refuse)


def test_additions_of_an_engine_afterwards_stay() -> None:
    async def adds(slot: Slot, raw: bytes) -> IngestOutcome:
        outcome = await store_it(slot, raw)
        return IngestOutcome(ingested=True, message_id=outcome.message_id, display_message=b"shown")

    outcomes, _ = gathered(adds, message("a"), message("b"))
    assert [outcome.display_message for outcome in outcomes] == [b"shown", b"shown"]


def test_no_messages_are_one_empty_step() -> None:
    assert gathered(store_it) == ([], [[]])
