"""`tools/list` and `tools/call`: who may call what on which session, with which arguments."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.e2e.sidecar_host import Host
from tests.e2e.terse_sessions import assemble, search, tell, tell_turns, use_terse

Json = dict[str, Any]


def schema(host: Host) -> Json:
    return host.call("tools/list")["tools"][0]["inputSchema"]


@pytest.mark.parametrize("engine", ["full", "terse", "default"])
def test_the_handshake_names_the_tool(start_host: Callable[..., Host], engine: str) -> None:
    host = start_host(engine=engine, initialized=False)
    names = ["context_search", "context_expand", "context_grep", "context_status", "context_compact"]
    assert host.initialize()["tools"] == names
    assert [tool["name"] for tool in host.call("tools/list")["tools"]] == names


def test_legacy_has_no_tools(start_host: Callable[..., Host], session: str) -> None:
    host = start_host(hostCapabilities=["runtime/compact"], engine="legacy", initialized=False)
    assert host.initialize()["tools"] == []
    assert host.call("tools/list")["tools"] == []


def test_a_session_switched_to_legacy_has_no_tools(start_host: Callable[..., Host], session: str) -> None:
    host = start_host(hostCapabilities=["runtime/compact"], engine="full")
    tell_turns(host, session, 1, 1)
    host.call("session/configure", sessionId=session, engine="legacy")
    assert host.call("tools/list", sessionId=session)["tools"] == []
    error = host.refusal("tools/call", sessionId=session, name="context_search", arguments={"mode": "tail"})
    assert (error.code, error.data["path"]) == (-32602, "/name")


def test_the_tool_is_described_for_a_model(host: Host) -> None:
    tool = host.call("tools/list")["tools"][0]
    Draft202012Validator.check_schema(tool["inputSchema"])
    assert tool["inputSchema"]["type"] == "object"
    assert not {"allOf", "anyOf", "oneOf", "if"} & tool["inputSchema"].keys()
    for name, member in tool["inputSchema"]["properties"].items():
        assert member["description"], name
    for mode in tool["inputSchema"]["properties"]["mode"]["enum"]:
        assert f'"{mode}"' in tool["description"]


ARGUMENTS = [
    ({}, "/arguments/mode"),
    ([], "/arguments"),
    ({"mode": "grep"}, "/arguments/mode"),
    ({"mode": 1}, "/arguments/mode"),
    ({"mode": "search", "query": 5}, "/arguments/query"),
    ({"mode": "search", "query": ""}, "/arguments/query"),
    ({"mode": "search", "query": "x", "before": -1}, "/arguments/before"),
    ({"mode": "search", "query": "x", "after": "2"}, "/arguments/after"),
    ({"mode": "tail", "last": 0}, "/arguments/last"),
    ({"mode": "tail", "last": 1.5}, "/arguments/last"),
    ({"mode": "head", "first": True}, "/arguments/first"),
    ({"mode": "turn", "turnId": 7}, "/arguments/turnId"),
    ({"mode": "relevant", "query": "x", "limit": 0}, "/arguments/limit"),
]


@pytest.mark.parametrize(("arguments", "path"), ARGUMENTS, ids=str)
def test_arguments_against_the_schema_are_refused_at_their_path(
    host: Host, session: str, arguments: Any, path: str
) -> None:
    assert list(Draft202012Validator(schema(host)).iter_errors(arguments)) != []
    tell_turns(host, session, 1, 1)
    error = host.refusal("tools/call", sessionId=session, name="context_search", arguments=arguments)
    assert (error.code, error.data["path"]) == (-32602, path)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"mode": "search"}, "/arguments/query"),
        ({"mode": "search", "query": "  "}, "/arguments/query"),
        ({"mode": "relevant"}, "/arguments/query"),
        ({"mode": "turn"}, "/arguments/turnId"),
    ],
    ids=str,
)
def test_what_a_mode_needs_is_asked_for_by_name(host: Host, session: str, arguments: Json, path: str) -> None:
    tell_turns(host, session, 1, 1)
    error = host.refusal("tools/call", sessionId=session, name="context_search", arguments=arguments)
    assert (error.code, error.data["path"]) == (-32602, path)
    assert f'mode "{arguments["mode"]}" needs it' in str(error)


@pytest.mark.parametrize(
    "arguments",
    [{"mode": "tail", "last": 2.0}, {"mode": "tail", "last": 10**9}, {"mode": "tail", "other": [1]}],
    ids=str,
)
def test_arguments_within_the_schema_are_taken(host: Host, session: str, arguments: Json) -> None:
    assert list(Draft202012Validator(schema(host)).iter_errors(arguments)) == []
    tell_turns(host, session, 1, 1)
    assert search(host, session, **arguments).startswith("--- messages")


def test_null_is_absent(host: Host, session: str) -> None:
    tell_turns(host, session, 1, 1)
    assert search(host, session, mode="tail", last=None, query=None).startswith("--- messages 1-4 of 4")


def test_an_unknown_tool_and_an_unknown_session_are_refused(host: Host, session: str) -> None:
    call = {"name": "context_search", "arguments": {"mode": "tail"}}
    assert host.refusal("tools/call", sessionId=session, **call).code == 1003
    tell_turns(host, session, 1, 1)
    error = host.refusal("tools/call", sessionId=session, name="grep", arguments={})
    assert (error.code, error.data["path"]) == (-32602, "/name")
    assert "context_search" in error.data["hint"]


def test_another_agents_session_is_not_read(host: Host, session: str) -> None:
    host.call(
        "context/ingest", sessionId=session, agentId="a", message={"role": "user", "content": "private"}
    )
    call = {"name": "context_search", "arguments": {"mode": "tail"}, "sessionId": session}
    assert host.refusal("tools/call", agentId="b", **call).code == 1003
    assert host.call("tools/list", agentId="b", sessionId=session) == host.call("tools/list", agentId="b")
    assert "private" in host.call("tools/call", agentId="a", **call)["content"][0]["text"]


def test_a_session_is_read_on_a_connection_of_another_format(
    start_host: Callable[..., Host], session: str
) -> None:
    writer = start_host(message_format="anthropic", namespace="n")
    block = {"type": "text", "text": "from another dialect"}
    writer.call("context/ingest", sessionId=session, message={"role": "user", "content": [block]})
    reader = start_host(message_format="openai", namespace="n")
    assert search(reader, session, mode="tail").endswith("[user t1] from another dialect")


def test_a_call_changes_nothing(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 8)
    before = assemble(host, session)
    search(host, session, mode="search", query="answer")
    search(host, session, mode="relevant", query="answer")
    after = assemble(host, session)
    assert (after["messages"], after["contextEpoch"]) == (before["messages"], before["contextEpoch"])


def test_a_stub_says_how_to_read_what_it_stands_for(host: Host, session: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "needle " + "hay " * 20_000},
    ]
    tell(host, session, [(1, messages)])
    answer = assemble(host, session, 1000)
    stub = json.dumps(answer["messages"][-1])
    assert "of turn t1. Read it with context_search, or with context_expand by its messageId." in stub
    assert "needle" in search(host, session, mode="turn", turnId="t1")


@pytest.mark.parametrize(
    ("arguments", "path", "told"),
    [
        (5, "/arguments", "arguments: expected `object`, got `int`"),
        ({"mode": "no"}, "/arguments/mode", "expected one of 'head'"),
    ],
)
def test_wrong_arguments_are_named_with_what_is_right(
    start_host: Callable[..., Host], session: str, arguments: object, path: str, told: str
) -> None:
    host = start_host(engine="full")
    tell_turns(host, session, 1, 1)
    error = host.refusal("tools/call", sessionId=session, name="context_search", arguments=arguments)
    assert (error.code, error.data["path"]) == (-32602, path)
    assert told in str(error)
