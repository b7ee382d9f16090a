import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.client import SidecarClient
from sidecar.protocol.assemble import AssembleContextParams, AssembleContextResult
from sidecar.protocol.context import PreflightContextResult
from tests.client_kit import assistant, conversation, user, with_sidecar


def test_what_was_ingested_is_assembled_byte_for_byte(tmp_path: Path) -> None:
    question = b'{"role" : "user",  "content":"caf\\u00e9", "n":1.0}'

    async def work(client: SidecarClient) -> None:
        stored = await client.ingest("s", question, message_id="m1")
        assert (stored.ingested, stored.message_id, stored.turn_id) == (True, "m1", "t1")
        await client.ingest("s", assistant("hello"))
        answer = await client.assemble("s", 1000)
        assert answer.bodies[0] == question
        assert answer.decoded[1] == assistant("hello")
        assert answer.estimated_tokens <= 1000

    with_sidecar(tmp_path, work, engine="full")


def test_half_a_surrogate_pair_survives_the_way_there_and_back(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        await client.ingest("s", user("cut \ud83d"))
        assert (await client.assemble("s", 1000)).decoded == [user("cut \ud83d")]
        assert [m.decoded async for m in client.stored_messages("s")] == [user("cut \ud83d")]

    with_sidecar(tmp_path, work, engine="full")


def test_the_handshake_tells_engine_version_and_limits(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        assert client.engine.id == "full"
        assert client.capabilities.protocol_version == "1.0"
        assert client.capabilities.limits.max_in_flight == 7
        assert client.server_info.name == "context-sidecar"
        assert client.alive

    with_sidecar(tmp_path, work, engine="full", config={"limits": {"maxInFlight": 7}})


def test_export_goes_on_over_all_pages(tmp_path: Path) -> None:
    messages = [user(f"message {number}") for number in range(450)]

    async def work(client: SidecarClient) -> None:
        stored = await client.ingest_batch("s", messages)
        assert stored.ingested_count == 450
        pages = [page async for page in client.export("s")]
        assert len(pages) > 1
        assert [m.decoded for page in pages for m in page.messages] == messages
        assert [m.message_id async for m in client.stored_messages("s")] == stored.message_ids

    with_sidecar(tmp_path, work, engine="full")


def test_sessions_are_listed_over_all_pages(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        for number in range(5):
            await client.ingest(f"s{number}", user("hi"))
        found = [entry.session_id async for entry in client.sessions(page_size=2)]
        assert sorted(found) == [f"s{number}" for number in range(5)]

    with_sidecar(tmp_path, work, engine="full")


def test_a_history_can_be_cut_copied_and_erased(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        for name in ("a", "b", "c"):
            await client.ingest("s", user(name), message_id=name)
        assert (await client.fork("s", "copy", at_message_id="b")).message_count == 2
        assert (await client.truncate("s", "a")).removed_messages == 2
        assert (await client.session("s")).message_count == 1
        assert await client.delete("s") is True
        assert await client.delete("s") is False
        assert [entry.session_id async for entry in client.sessions()] == ["copy"]

    with_sidecar(tmp_path, work, engine="full")


def test_a_turn_is_committed_once(tmp_path: Path) -> None:
    turn = [user("hi"), assistant("hello")]

    async def work(client: SidecarClient) -> None:
        assert (await client.commit_turn("s", "k1", turn, terminal={"ok": True})).status == "committed"
        assert (await client.commit_turn("s", "k1", turn)).status == "duplicate"
        await client.after_turn("s", [*turn, user("more")], usage={"input_tokens": 9})
        assert (await client.session("s")).message_count == 3
        assert (await client.bootstrap("s", [*turn, user("more")])).bootstrapped is False

    with_sidecar(tmp_path, work, engine="full")


def test_any_request_can_be_sent_by_name(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        answer = await client.request(
            "context/preflight", {"sessionId": "s", "tokenBudget": 5}, PreflightContextResult
        )
        assert answer.fits
        assert (await client.request("engine/list", None, dict[str, object]))["engines"]

    with_sidecar(tmp_path, work, engine="full")


def test_explain_names_what_was_dropped(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        await client.ingest_batch("s", conversation(turns=6, words=100))
        answer = await client.assemble("s", 400)
        explained = await client.explain("s", result_id=answer.result_id)
        assert {decision.decision for decision in explained.decisions} >= {"sent", "dropped"}

    with_sidecar(tmp_path, work, engine="full")


def test_what_is_stored_outlives_the_process(tmp_path: Path) -> None:
    async def tell(client: SidecarClient) -> None:
        await client.ingest("s", user("remember"))

    async def ask(client: SidecarClient) -> list[dict[str, object]]:
        return (await client.assemble("s", 100)).decoded

    with_sidecar(tmp_path, tell, engine="full", namespace="n")
    assert with_sidecar(tmp_path, ask, engine="full", namespace="n") == [user("remember")]


def test_the_settings_of_a_session_can_be_changed(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        await client.ingest("s", user("hi"))
        assert (await client.configure("s", engine="full")).engine == "full"
        assert (await client.session("s")).engine == "full"
        await client.dispose()
        assert (await client.session("s")).engine == "full"

    with_sidecar(tmp_path, work, engine="default")


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=300), st.integers(60, 500)), min_size=2, max_size=12))
def test_answers_that_travel_as_edits_are_those_that_travel_whole(steps: list[tuple[str, int]]) -> None:
    async def work(client: SidecarClient) -> None:
        for number, (text, budget) in enumerate(steps):
            await client.ingest("s", user(f"{number} {text}"))
            told = await client.assemble("s", budget + 1500)
            params = AssembleContextParams(session_id="s", token_budget=budget + 1500)
            whole = await client.request("context/assemble", params, AssembleContextResult)
            assert whole.messages is not None
            assert told.bodies == [bytes(message) for message in whole.messages]

    with TemporaryDirectory() as folder:
        with_sidecar(Path(folder), work, engine="full", deltas=True)


def test_repeated_answers_do_travel_as_edits(tmp_path: Path) -> None:
    async def work(client: SidecarClient) -> None:
        await client.ingest("s", user("one"))
        first = await client.assemble("s", 1000)
        await client.ingest("s", user("two"))
        params = AssembleContextParams(session_id="s", token_budget=1000, previous_result_id=first.result_id)
        raw = await client.request("context/assemble", params, AssembleContextResult)
        assert raw.messages is None
        assert raw.edits is not None
        assert [json.loads(bytes(m)) for edit in raw.edits for m in edit.messages] == [user("two")]
        assert (await client.assemble("s", 1000)).decoded == [user("one"), user("two")]

    with_sidecar(tmp_path, work, engine="full", deltas=True)
