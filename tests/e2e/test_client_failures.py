import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from sidecar.client import (
    ClientClosed,
    ContextOverflow,
    EngineUnavailable,
    HostCapabilityMissing,
    InvalidParams,
    MethodNotFound,
    RequestTimedOut,
    SessionNotFound,
    SidecarClient,
    SidecarExited,
    SidecarNotStarted,
    UnexpectedAnswer,
)
from sidecar.protocol.runtime import CompactRuntimeParams, CompactRuntimeResult
from tests.client_kit import SERVE, user, with_sidecar, within_limit


def test_an_overflow_tells_the_budget_with_which_it_succeeds(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        await client.ingest("s", user("words " * 50))
        with pytest.raises(ContextOverflow) as caught:
            await client.assemble("s", 3)
        assert caught.value.token_budget == 3
        assert caught.value.retryable is False
        assert caught.value.hint
        answer = await client.assemble("s", caught.value.required)
        assert answer.estimated_tokens <= caught.value.required

    with_sidecar(tmp_path, work, engine="full")


def test_an_unknown_session_is_an_error_of_its_own(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        with pytest.raises(SessionNotFound) as caught:
            await client.assemble("nowhere", 100)
        assert caught.value.code == 1003
        with pytest.raises(SessionNotFound):
            async for _ in client.export("nowhere"):
                pass

    with_sidecar(tmp_path, work, engine="full")


def test_wrong_params_are_told_with_their_place(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        with pytest.raises(InvalidParams) as caught:
            await client.assemble("s", 0, [user("hi")])
        assert caught.value.path == "/tokenBudget"
        with pytest.raises(MethodNotFound):
            await client.request("context/dream", {}, object)

    with_sidecar(tmp_path, work, engine="full")


def test_a_result_of_another_shape_is_an_unexpected_answer(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        with pytest.raises(UnexpectedAnswer):
            await client.request("engine/list", {}, list[int])

    with_sidecar(tmp_path, work, engine="full")


def test_an_engine_that_does_not_exist_fails_the_start(tmp_path: Path) -> None:
    async def work() -> None:
        client = SidecarClient.start(SERVE, state_dir=tmp_path, engine="nope")
        with pytest.raises(EngineUnavailable) as caught:
            await client.open()
        assert caught.value.data.engine_id == "nope"
        assert not client.alive

    within_limit(work())


def test_a_missing_program_fails_the_start() -> None:
    async def work() -> None:
        with pytest.raises(SidecarNotStarted, match="no-such-program"):
            await SidecarClient.start(["no-such-program"]).open()

    within_limit(work())


def test_a_program_that_ends_at_once_is_told_with_code_and_last_words() -> None:
    script = "import sys; print('no disk', file=sys.stderr); sys.exit(7)"

    async def work() -> None:
        with pytest.raises(SidecarExited) as caught:
            await SidecarClient.start([sys.executable, "-c", script], on_stderr=lambda line: None).open()
        assert caught.value.exit_code == 7
        assert caught.value.stderr == ["no disk"]
        assert "no disk" in str(caught.value)

    within_limit(work())


def test_a_killed_sidecar_fails_what_waits_and_what_comes(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def wait_for_ever(params: CompactRuntimeParams) -> CompactRuntimeResult:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def work(client: SidecarClient) -> None:
        pending = asyncio.create_task(client.compact("s", 100))
        await waiting.wait()
        assert client.pid is not None
        os.kill(client.pid, signal.SIGKILL)
        for failing in (pending, client.engines()):
            with pytest.raises(SidecarExited) as caught:
                await failing
            assert caught.value.exit_code == -signal.SIGKILL
        assert not client.alive
        assert await client.wait() == -signal.SIGKILL

    with_sidecar(tmp_path, work, engine="legacy", on_compact=wait_for_ever)


def test_a_request_that_takes_too_long_times_out_and_is_cancelled(tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    async def wait_for_ever(params: CompactRuntimeParams) -> CompactRuntimeResult:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def work(client: SidecarClient) -> None:
        with pytest.raises(RequestTimedOut) as caught:
            await client.request("context/compact", {"sessionId": "s"}, object, timeout_s=0.2)
        assert caught.value.method == "context/compact"
        await cancelled.wait()
        assert await client.engines()

    with_sidecar(tmp_path, work, engine="legacy", on_compact=wait_for_ever)


def test_cancelling_a_call_cancels_what_the_sidecar_asked_for_it(tmp_path: Path) -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait_for_ever(params: CompactRuntimeParams) -> CompactRuntimeResult:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def work(client: SidecarClient) -> None:
        task = asyncio.create_task(client.compact("s", 100))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()
        assert await client.engines()

    with_sidecar(tmp_path, work, engine="legacy", on_compact=wait_for_ever)


def test_a_missing_callback_is_a_missing_capability(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        with pytest.raises(HostCapabilityMissing) as caught:
            await client.compact("s", 100)
        assert caught.value.capability == "runtime/compact"

    with_sidecar(tmp_path, work, engine="legacy")


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        client = SidecarClient.start(SERVE, state_dir=tmp_path, engine="full")
        with pytest.raises(ClientClosed):
            await client.engines()
        async with client:
            pid = client.pid
        with pytest.raises(ClientClosed):
            await client.engines()
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    within_limit(work())


def test_leaving_the_block_in_the_middle_of_work_leaves_no_process(tmp_path: Path) -> None:
    async def work() -> int | None:
        async with SidecarClient.start(SERVE, state_dir=tmp_path, engine="full") as client:
            pid = client.pid
            asyncio.current_task().cancel()  # pyright: ignore[reportOptionalMemberAccess]
            try:
                await client.engines()
            except asyncio.CancelledError:
                return pid
        return None

    pid = within_limit(work())
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_child_that_writes_much_to_stderr_is_drained() -> None:
    script = "import sys; sys.stderr.write('x' * 300_000 + '\\nlast'); sys.exit(3)"
    lines: list[str] = []

    async def work() -> None:
        with pytest.raises(SidecarExited) as caught:
            await SidecarClient.start([sys.executable, "-c", script], on_stderr=lines.append).open()
        assert caught.value.stderr[-1] == "last"
        assert sum(map(len, lines)) == 300_004

    within_limit(work())
