"""Sources that fail, hang or return nonsense lose only their own fragments."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from sidecar.memory.contract import Fragment, MemoryRequest, MemorySource
from sidecar.memory.coordinator import MOST_FRAGMENTS, Answer, ask

REQUEST = MemoryRequest("agent", "per-message", 1000)
Work = Callable[[MemoryRequest], Awaitable[Any]]


class Source:
    injection_points = ("per-message",)

    def __init__(self, name: str, work: Work) -> None:
        self.name = name
        self.get_context = work


async def good(request: MemoryRequest) -> list[Fragment]:
    return [Fragment(content=f"for {request.agent_id}")]


async def failing(request: MemoryRequest) -> list[Fragment]:
    raise OSError("out of order")


async def leaving(request: MemoryRequest) -> list[Fragment]:
    raise SystemExit(3)


async def hanging(request: MemoryRequest) -> list[Fragment]:
    await asyncio.Event().wait()
    return []


async def stubborn(request: MemoryRequest) -> list[Fragment]:
    for _ in range(3):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return []


def answers(*work: Work, limit_ms: int = 200) -> list[Answer]:
    sources = [cast(MemorySource, Source(each.__name__, each)) for each in work]

    async def asked() -> list[Answer]:
        async with asyncio.timeout(30):
            result = await ask(sources, REQUEST, limit_ms)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            for _ in range(10):  # some do not heed the first cancellations
                task.cancel()
                await asyncio.sleep(0)
        return result

    return asyncio.run(asked())


def test_the_others_answer_when_one_fails_hangs_or_leaves() -> None:
    found = answers(failing, hanging, good, leaving, stubborn)
    assert [bool(answer.fragments) for answer in found] == [False, False, True, False, False]
    assert [bool(answer.problem) for answer in found] == [True, True, False, True, True]


def test_sources_are_queried_concurrently() -> None:
    begun: list[MemoryRequest] = []
    all_begun = asyncio.Event()

    async def waits_for_all(request: MemoryRequest) -> list[Fragment]:
        begun.append(request)
        if len(begun) == 40:
            all_begun.set()
        await all_begun.wait()
        return [Fragment(content="all were asked")]

    assert all(answer.fragments for answer in answers(*[waits_for_all] * 40, limit_ms=20_000))


def test_nonsense_is_passed_over_piece_by_piece() -> None:
    async def mixed(request: MemoryRequest) -> Any:
        wrong = Fragment(content=cast(str, 7))
        return [Fragment(content="kept"), "text", None, wrong, {"content": "x"}]

    async def text(request: MemoryRequest) -> Any:
        return "fragments"

    async def nothing(request: MemoryRequest) -> Any:
        return None

    found = answers(mixed, text, nothing)
    assert [[f.content for f in answer.fragments] for answer in found] == [["kept"], [], []]
    assert all(answer.problem for answer in found)


def test_an_endless_answer_is_cut() -> None:
    async def endless(request: MemoryRequest) -> Any:
        return (Fragment(content=str(n)) for n in iter(int, 1))

    assert len(answers(endless)[0].fragments) == MOST_FRAGMENTS


def test_an_endless_answer_of_nonsense_is_cut() -> None:
    async def endless(request: MemoryRequest) -> Any:
        return iter(int, 1)

    found = answers(endless)[0]
    assert found.fragments == [] and found.problem


def test_halves_of_surrogate_pairs_are_replaced_in_every_text_of_a_fragment() -> None:
    async def cut(request: MemoryRequest) -> Any:
        half = "\ud83d"
        return [Fragment(content=f"数据 {half}", id=f"id {half}", label=f"from {half}")]

    [fragment] = answers(cut)[0].fragments
    assert (fragment.content, fragment.id, fragment.label) == ("数据 ?", "id ?", "from ?")
