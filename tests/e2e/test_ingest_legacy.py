"""The engine that stores nothing, by whatever method messages come."""

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk

TALK = Talk("openai")


@pytest.fixture
def legacy(start_host: StartHost) -> Host:
    """A host that compacts by itself."""
    return start_host(hostCapabilities=["runtime/compact", "ownsHistory"])


def test_nothing_is_stored(legacy: Host, session: str) -> None:
    turn = TALK.turn(0)
    assert not legacy.call("context/ingest", sessionId=session, message=turn[0])["ingested"]
    assert legacy.call("context/ingestBatch", sessionId=session, messages=turn)["ingestedCount"] == 0
    assert not legacy.call("context/bootstrap", sessionId=session, messages=turn)["bootstrapped"]
    assert legacy.call("context/afterTurn", sessionId=session, messages=turn) == {}
    assert legacy.refusal("session/get", sessionId=session).code == 1003


def test_a_batch_is_answered_with_an_id_for_each_message(legacy: Host, session: str) -> None:
    result = legacy.call(
        "context/ingestBatch", sessionId=session, messages=TALK.turn(0)[:2], messageIds=["m1", None]
    )
    named, made_up = result["messageIds"]
    assert named == "m1"
    assert made_up


def test_a_message_that_is_not_stored_has_an_id_all_the_same(legacy: Host, session: str) -> None:
    message = TALK.turn(0)[0]
    first = legacy.call("context/ingest", sessionId=session, message=message)
    assert first["messageId"]
    assert legacy.call("context/ingest", sessionId=session, message=message) == first
    own = legacy.call("context/ingest", sessionId=session, message=message, messageId="mine")
    assert own["messageId"] == "mine"


def test_advancement_keys_are_recorded(legacy: Host, session: str) -> None:
    params = {"sessionId": session, "advancementKey": "k", "messages": TALK.turn(0)}
    assert legacy.call("context/commitTurn", **params)["status"] == "committed"
    legacy.restart(kill=True)
    assert legacy.call("context/commitTurn", **params)["status"] == "duplicate"
    shown = [*TALK.turn(0), TALK.user("next")]
    assert legacy.call("context/assemble", sessionId=session, messages=shown)["messages"] == shown


def test_what_legacy_was_shown_is_stored_once_another_engine_is_chosen(legacy: Host, session: str) -> None:
    legacy.call("context/commitTurn", sessionId=session, advancementKey="k", messages=TALK.turn(0))
    legacy.call("session/configure", sessionId=session, engine="full")
    both = [*TALK.turn(0), *TALK.turn(1)]
    legacy.call("context/assemble", sessionId=session, messages=both, prompt="next", tokenBudget=9000)
    legacy.call("context/commitTurn", sessionId=session, advancementKey="k2", messages=TALK.turn(2))
    page = legacy.call("session/export", sessionId=session)
    assert [entry["message"] for entry in page["messages"]] == [*both, *TALK.turn(2)]
