import asyncio
from pathlib import Path

from sidecar.client import SidecarClient
from sidecar.protocol.context import CompactionResult
from sidecar.protocol.runtime import (
    CompactRuntimeParams,
    CompactRuntimeResult,
    CompleteRuntimeParams,
    CompleteRuntimeResult,
)
from sidecar.protocol.session import ChangedSessionParams
from tests.client_kit import conversation, with_sidecar


def test_legacy_hands_compaction_to_the_host(tmp_path: Path) -> None:
    asked: list[CompactRuntimeParams] = []

    async def compact(params: CompactRuntimeParams) -> CompactRuntimeResult:
        asked.append(params)
        return CompactRuntimeResult(
            ok=True, compacted=True, result=CompactionResult(tokens_before=900, tokens_after=90)
        )

    async def work(client: SidecarClient) -> None:
        result = await client.compact("s", 100, force=True, custom_instructions="keep names")
        assert result.compacted
        assert result.result is not None
        assert result.result.tokens_after == 90

    with_sidecar(tmp_path, work, engine="legacy", on_compact=compact)
    assert (asked[0].session_id, asked[0].token_budget, asked[0].force) == ("s", 100, True)
    assert asked[0].custom_instructions == "keep names"


def test_a_callback_that_raises_is_a_reason_for_the_sidecar(tmp_path: Path) -> None:
    async def compact(params: CompactRuntimeParams) -> CompactRuntimeResult:
        raise RuntimeError("the model is asleep")

    async def work(client: SidecarClient) -> None:
        result = await client.compact("s", 100)
        assert (result.ok, result.compacted) == (False, False)
        assert "the model is asleep" in (result.reason or "")

    with_sidecar(tmp_path, work, engine="legacy", on_compact=compact)


def test_a_host_that_completes_writes_the_summary(tmp_path: Path) -> None:
    asked: list[CompleteRuntimeParams] = []

    async def complete(params: CompleteRuntimeParams) -> CompleteRuntimeResult | str:
        asked.append(params)
        return "The river bends since its bank gives way. The person asks about rivers again and again."

    async def work(client: SidecarClient) -> list[str]:
        await client.ingest_batch("s", conversation(turns=30, words=60))
        assert (await client.compact("s", 4000, force=True)).compacted
        return [str(message["content"]) for message in (await client.assemble("s", 4000)).decoded]

    texts = with_sidecar(tmp_path, work, engine="default", on_complete=complete)
    assert asked[0].purpose == "summary"
    assert any("its bank gives way. The person" in text for text in texts)


def test_a_session_that_changes_is_heard_of(tmp_path: Path) -> None:
    heard: list[ChangedSessionParams] = []
    came = asyncio.Event()

    def changed(params: ChangedSessionParams) -> None:
        heard.append(params)
        came.set()

    async def work(client: SidecarClient) -> None:
        await client.ingest_batch("s", conversation(turns=2, words=20))
        await client.delete("s")
        await came.wait()

    with_sidecar(tmp_path, work, engine="full", on_session_changed=changed)
    assert ("s", "deleted") in [(params.session_id, params.reason) for params in heard]


def test_callbacks_declare_their_capabilities(tmp_path: Path) -> None:
    async def complete(params: CompleteRuntimeParams) -> str:
        return ""

    async def work(client: SidecarClient) -> str:
        checks = (await client.doctor()).checks
        return next(check.message for check in checks if check.name == "host")

    said = with_sidecar(
        tmp_path, work, engine="full", on_complete=complete, host_capabilities=["future/thing"], deltas=True
    )
    assert "runtime/complete" in said
    assert "assembleDelta" in said
