"""Pages of sessions and of messages, also while something changes."""

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, exported
from tests.e2e.talk import Talk

TALK = Talk("openai")
INVALID = -32602


def listed(host: Host, limit: int, **params: object) -> list[str]:
    """The names of all sessions, page by page."""
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = host.call("session/list", limit=limit, **params, **cursor)
        assert len(page["sessions"]) <= limit
        names += [entry["sessionId"] for entry in page["sessions"]]
        if "nextCursor" not in page:
            return names
        cursor = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 1000])
def test_every_session_is_on_one_page_latest_change_first(start_host: StartHost, limit: int) -> None:
    host = start_host()
    for n in range(20):
        host.call("context/ingest", sessionId=f"s{n}", message=TALK.user("hi"))
    assert sorted(listed(host, limit)) == sorted(f"s{n}" for n in range(20))
    host.call("context/ingest", sessionId="s5", message=TALK.user("hi"))
    assert listed(host, limit)[0] == "s5"


def test_sessions_that_come_and_go_between_pages_disturb_no_others(start_host: StartHost) -> None:
    host = start_host()
    for n in range(12):
        host.call("context/ingest", sessionId=f"s{n}", message=TALK.user("hi"))
    first = host.call("session/list", limit=4)
    seen = [entry["sessionId"] for entry in first["sessions"]]
    host.call("session/delete", sessionId=seen[-1])
    host.call("session/delete", sessionId="s1")
    host.call("context/ingest", sessionId="new", message=TALK.user("hi"))
    rest = host.call("session/list", limit=1000, cursor=first["nextCursor"])["sessions"]
    names = [*seen, *(entry["sessionId"] for entry in rest)]
    untouched = {f"s{n}" for n in range(12)} - {"s1"}
    assert untouched <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "cursor", ["x", "1-2", "1-2-3-4", "-1-2-3", "1-1-99999999999999999999999", "١-٢-٣", "9-9-9", " "]
)
@pytest.mark.parametrize("method", ["session/list", "session/export"])
def test_a_made_up_cursor_is_refused(host: Host, session: str, method: str, cursor: str) -> None:
    host.call("context/ingest", sessionId=session, message=TALK.user("hi"))
    params = {"sessionId": session} if method == "session/export" else {}
    assert host.refusal(method, cursor=cursor, **params).code == INVALID


@pytest.mark.parametrize("limit", [0, -1, 1001, 1.5, "3"])
def test_a_page_has_1_to_1000_entries(host: Host, limit: object) -> None:
    error = host.refusal("session/list", limit=limit)
    assert error.code == INVALID and error.data["path"] == "/limit"


def test_an_export_goes_on_over_messages_that_come_in_between(host: Host, session: str) -> None:
    messages = [TALK.user(f"{n}") for n in range(450)]
    host.call("context/ingestBatch", sessionId=session, messages=messages)
    first = host.call("session/export", sessionId=session)
    host.call("context/ingest", sessionId=session, message=TALK.user("late"))
    found = list(first["messages"])
    cursor = first.get("nextCursor")
    while cursor:
        page = host.call("session/export", sessionId=session, cursor=cursor)
        found += page["messages"]
        cursor = page.get("nextCursor")
    assert [entry["message"] for entry in found] == [*messages, TALK.user("late")]


@pytest.mark.parametrize("change", ["truncate", "delete", "insert"])
def test_an_export_does_not_go_on_over_a_history_that_has_changed(
    host: Host, session: str, change: str
) -> None:
    messages = [TALK.user(f"{n} is what was asked") for n in range(450)]
    host.call("context/bootstrap", sessionId=session, messages=messages)
    first = host.call("session/export", sessionId=session)
    if change == "insert":
        more = [*messages[:9], TALK.assistant("a reply that was missing"), *messages[9:]]
        host.call("context/bootstrap", sessionId=session, messages=more)
    elif change == "truncate":
        after = first["messages"][-2]["messageId"]
        host.call("session/truncate", sessionId=session, afterMessageId=after)
    else:
        host.call("session/delete", sessionId=session)
        host.call("context/bootstrap", sessionId=session, messages=messages)
    error = host.refusal("session/export", sessionId=session, cursor=first["nextCursor"])
    assert error.code == INVALID and error.data["path"] == "/cursor"


def test_large_messages_make_small_pages(host: Host, session: str) -> None:
    messages = [TALK.user(f"{n} " + "x" * 3_000_000) for n in range(7)]
    for message in messages:
        host.call("context/ingest", sessionId=session, message=message)
    first = host.call("session/export", sessionId=session)
    assert 1 <= len(first["messages"]) < 7
    assert [entry["message"] for entry in exported(host, session)] == messages
