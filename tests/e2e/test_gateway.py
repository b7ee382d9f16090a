"""The gateway between a program and the API of its model: real processes, HTTP on loopback."""

import asyncio
import gzip
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import mcp
import mcp.types
import msgspec
import pytest
from aiohttp import web

from sidecar.client import SidecarClient
from sidecar.protocol.session import SessionEntry
from tests.e2e.gateway_process import COMMAND, IMPATIENT, LIMIT_S, Running, Start
from tests.e2e.processes_of import children_of
from tests.e2e.test_telemetry import Collector
from tests.model_api import Body, ModelApis, bare, prompt_tokens

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

KEY = "sk-ant-a-key-that-nobody-else-has"
CLAUDE = {"x-claude-code-session-id": "5c0375b4-0000", "x-api-key": KEY, "anthropic-version": "2023-06-01"}
CODEX = {"session-id": "01a2", "thread-id": "01a2", "authorization": f"Bearer {KEY}"}
TOOLS = [{"name": "Bash", "description": "Run a command.", "input_schema": {"type": "object"}}]


def called(number: int) -> list[Body]:
    """A call and its result, as Claude Code sends them."""
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "Bash",
        "input": {"command": f"step {number}"},
    }
    output = f"result {number}: " + " ".join(f"line {number}.{n} of the log" for n in range(120))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "system", "content": f"<total_tokens>{99_000 - number} tokens left</total_tokens>"},
    ]


def claude_body(messages: list[Body], **more: Any) -> Body:
    """A request as Claude Code makes it: the newest message has the cache marker."""
    sent = json.loads(json.dumps(messages))
    newest = next(message for message in reversed(sent) if message["role"] == "user")
    newest["content"] = bare(newest)["content"]
    newest["content"][-1]["cache_control"] = {"type": "ephemeral"}
    system = [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}]
    return {"model": "claude-x", "max_tokens": 1000, "stream": True, "system": system, "tools": TOOLS} | {
        "messages": sent,
        **more,
    }


OPENING: list[Body] = [
    {"role": "user", "content": [{"type": "text", "text": "Mend the build. The ticket is QX-4711."}]},
    {"role": "system", "content": "Agents: explorer, planner."},
]


def claude_session(running: Running, turns: int) -> list[Body]:
    """Let a program call tools, one request a turn; returns its whole history."""
    history = [*OPENING]
    for number in range(turns):
        status, _, _ = running.ask("/v1/messages?beta=true", claude_body(history), CLAUDE)
        assert status == 200
        history += called(number)
    return history


def test_a_request_that_fits_goes_upstream_byte_for_byte(gateway: Start, upstream: ModelApis) -> None:
    running = gateway()
    body = json.dumps(claude_body([*OPENING, *called(1)], metadata={"odd  spacing": 1.50}), indent=1).encode()
    status, answer, headers = running.ask("/v1/messages?beta=true", body, CLAUDE)
    assert (status, upstream.bodies) == (200, [body])
    assert b"answer 1" in answer
    assert headers["content-type"] == "text/event-stream"
    sent = {name.lower(): value for name, value in upstream.headers[0].items()}
    assert sent["x-api-key"] == KEY
    assert "user-agent" not in sent


def test_a_history_past_the_window_is_valid_fits_and_extends_the_request_before(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "16k")
    claude_session(running, 60)
    assert upstream.faults == []
    sent = upstream.requests
    assert all(prompt_tokens(body) + 1000 <= 16_000 for body in sent)
    assert any(len(body["messages"]) < len(before["messages"]) for before, body in itertools.pairwise(sent))
    bodies = [[bare(message) for message in body["messages"]] for body in sent]
    extended = [now[: len(before)] == before for before, now in itertools.pairwise(bodies)]
    assert sum(extended) >= 50, extended
    assert all("Agents: explorer" in str(body) for body in bodies), "the program's instructions stay"


def test_the_sidecar_is_sent_what_is_new_and_not_the_history_again(gateway: Start, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    serve = f"{COMMAND} serve --state-dir {tmp_path / 'state'}"
    running = gateway("--window", "200k", "--sidecar", f'sh -c "tee {sent} | {serve}"')
    history = claude_session(running, 40)
    running.close()
    # Twice it is sent whole: to be aligned with what is stored, and to be stored.
    assert len(json.dumps(history)) * 0.9 < len(sent.read_bytes()) < len(json.dumps(history)) * 3
    assert len(running.stored()) == 1 + 39 * 2


def test_a_rewound_history_leaves_nothing_of_what_was_taken_back(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "16k")
    history = claude_session(running, 30)
    taken_back, history = history[-9:], history[:-9]
    for number in range(100, 105):
        assert running.ask("/v1/messages", claude_body(history), CLAUDE)[0] == 200
        sent = upstream.bodies[-1].decode()
        assert not [message for message in taken_back[::3] if f'"{message["content"][0]["id"]}"' in sent]
        history += called(number)
    assert upstream.faults == []


@pytest.mark.parametrize("turns", [1, 15])
def test_no_summary_of_what_was_taken_back_reaches_the_model(
    gateway: Start, upstream: ModelApis, turns: int
) -> None:
    running = gateway("--window", "16k")
    history = claude_session(running, 25)[: len(OPENING) + 3 * turns]
    for number in range(100, 120):
        history += called(number)
        assert running.ask("/v1/messages", claude_body(history), CLAUDE)[0] == 200
        sent = upstream.bodies[-1].decode()
        gone = [turn for turn in range(turns, 24) if f"result {turn}:" in sent or f'step {turn}"' in sent]
        assert gone == [], number
    assert len(upstream.requests[-1]["messages"]) < len(history), "the new turns went past the window"
    assert upstream.faults == []


def test_conversations_that_begin_alike_see_nothing_of_each_other(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "8k")
    begun = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    histories = {"amber": [*begun], "birch": [*begun]}
    for number in range(18):
        for word, history in histories.items():
            history.append({"role": "assistant", "content": f"{word} says {number} " + "rain again " * 90})
            history.append({"role": "user", "content": f"{word} asks {number} " + "about the weather " * 60})
            body = {"model": "local", "stream": True, "max_tokens": 500, "messages": history}
            assert running.ask("/v1/chat/completions", body)[0] == 200
            [other] = histories.keys() - {word}
            assert other not in upstream.bodies[-1].decode()
    assert all(len(body["messages"]) < 38 for body in upstream.requests[-2:])
    assert upstream.faults == []


def test_two_gateways_on_one_session_store_each_message_once(gateway: Start, upstream: ModelApis) -> None:
    gateways = gateway("--window", "16k"), gateway("--window", "16k")
    history = [*OPENING]
    running = gateways[0]
    for number in range(8):
        running = gateways[number % 3 == 0]
        assert running.ask("/v1/messages", claude_body(history), CLAUDE)[0] == 200
        deadline = time.monotonic() + LIMIT_S
        while len(running.stored()) != 1 + 2 * number:  # what is stored behind the answer
            assert time.monotonic() < deadline, running.stored()
        history += called(number)
    assert upstream.faults == []
    results = [text for text in running.stored() if "tool_result" in text]
    assert len(results) == len(set(results)) == 7


def test_a_sidecar_that_dies_leaves_requests_as_they_are_and_is_started_again(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "16k")
    history = claude_session(running, 40)
    for pid in children_of(running.process.pid):
        os.kill(pid, signal.SIGKILL)
    body = json.dumps(claude_body(history)).encode()
    assert running.ask("/v1/messages", body, CLAUDE)[0] == 200
    assert upstream.bodies[-1] == body
    upstream.bodies.clear()
    deadline = time.monotonic() + LIMIT_S
    while not upstream.bodies or upstream.bodies[-1] == body:
        assert time.monotonic() < deadline, "the sidecar is not started again"
        assert running.ask("/v1/messages", body, CLAUDE)[0] == 200
    assert len(upstream.requests[-1]["messages"]) < len(history)
    assert running.close().count("The sidecar failed") == 1


def test_a_sidecar_that_hangs_holds_up_one_request_and_no_more(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "16k", *IMPATIENT)
    history = claude_session(running, 40)
    for pid in children_of(running.process.pid):
        os.kill(pid, signal.SIGSTOP)
    body = json.dumps(claude_body(history)).encode()
    assert running.ask("/v1/messages", body, CLAUDE)[0] == 200
    assert upstream.bodies[-1] == body
    # With a limit of its own for each, these would take minutes.
    assert all(running.ask("/v1/messages", body, CLAUDE)[0] == 200 for _ in range(50))
    for pid in children_of(running.process.pid):
        os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + LIMIT_S
    while upstream.bodies[-1] == body:
        assert time.monotonic() < deadline, "it is not asked again"
        assert running.ask("/v1/messages", body, CLAUDE)[0] == 200
    assert running.close().count("The sidecar does not answer") == 1


def test_a_sidecar_that_is_not_there_never_stands_in_the_way(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--sidecar", "/no/such/program")
    body = json.dumps(claude_body([*OPENING, *called(1)])).encode()
    assert running.ask("/v1/messages", body, CLAUDE)[0] == 200
    assert upstream.bodies == [body]
    assert "The sidecar failed" in running.close()


@pytest.mark.parametrize("status", [401, 429, 500, 529])
def test_an_error_of_the_provider_comes_back_as_it_is(
    gateway: Start, upstream: ModelApis, status: int
) -> None:
    upstream.script = lambda _body, _number: web.Response(
        status=status, body=b'{"type":"error"}', headers={"retry-after": "7", "request-id": "req_1"}
    )
    got, body, headers = gateway().ask("/v1/messages", claude_body([*OPENING, *called(1)]), CLAUDE)
    assert (got, body, headers["retry-after"], headers["request-id"]) == (
        status,
        b'{"type":"error"}',
        "7",
        "req_1",
    )
    assert len(upstream.bodies) == 1


def test_a_stream_that_breaks_upstream_breaks_for_the_program(gateway: Start, upstream: ModelApis) -> None:
    upstream.script = lambda _body, _number: None
    with pytest.raises((http.client.HTTPException, OSError)):
        gateway().ask("/v1/messages", claude_body([*OPENING, *called(1)]), CLAUDE)


def test_a_prompt_that_is_too_long_for_the_provider_is_sent_once_more_and_shorter(
    gateway: Start, upstream: ModelApis
) -> None:
    def refuse(body: Body, number: int) -> web.StreamResponse | str:
        tokens = prompt_tokens(body)
        too_long = {
            "type": "error",
            "error": {"message": f"prompt is too long: {tokens} tokens > 9000 maximum"},
        }
        return web.json_response(too_long, status=400) if tokens > 9_000 else f"answer {number}"

    upstream.script = refuse
    running = gateway("--window", "200k")
    claude_session(running, 40)
    tokens = [prompt_tokens(body) for body in upstream.requests]
    assert 1 <= sum(count > 9_000 for count in tokens) <= 5, "what was refused is remembered"
    assert upstream.faults == []


def test_claude_code_gets_its_summary_from_the_engine_and_goes_on_from_it(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "64k")
    history = claude_session(running, 12)
    asked = json.loads(json.dumps(history))
    asked[-2]["content"].append({"type": "text", "text": "CRITICAL: Respond with TEXT ONLY. Summarise."})
    before = len(upstream.bodies)
    _, answer, _ = running.ask("/v1/messages", claude_body(asked), CLAUDE)
    assert len(upstream.bodies) == before, "no model is asked"
    said = "".join(
        json.loads(line[5:])["delta"].get("text", "")
        for line in answer.decode().splitlines()
        if line.startswith("data:") and '"content_block_delta"' in line
    )
    assert said.startswith("<summary>")
    assert "QX-4711" in said
    begun: list[Body] = [
        {"role": "user", "content": [{"type": "text", "text": f"This session goes on. {said}"}]},
        {"role": "user", "content": [{"type": "text", "text": "Go on, please."}]},
    ]
    assert running.ask("/v1/messages", claude_body(begun), CLAUDE)[0] == 200
    assert upstream.faults == []
    assert "QX-4711" in str(upstream.requests[-1]["messages"])
    said_last = [
        block["text"]
        for message in upstream.requests[-1]["messages"][-2:]
        for block in bare(message)["content"]
    ]
    assert "Go on, please." in said_last, "behind it there is at most what the engine recalls"


def items(number: int) -> list[Body]:
    """A call with its reasoning and its result, as Codex sends them."""
    output = f"result {number}: " + " ".join(f"line {number}.{n} of the log" for n in range(120))
    call = {"type": "function_call", "name": "exec", "arguments": "{}", "call_id": f"c{number}"}
    return [
        {"type": "reasoning", "id": f"rs{number}", "summary": [], "encrypted_content": f"E{number}"},
        call,
        {"type": "function_call_output", "call_id": f"c{number}", "output": output},
    ]


def said(role: str, text: str) -> Body:
    """An item with a text."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


CODEX_OPENING = [said("developer", "You are Codex."), said("user", "Mend the build. The ticket is QX-4711.")]


def codex_body(history: list[Body]) -> Body:
    """A request as Codex makes it."""
    return {"model": "gpt-5.5", "stream": True, "tools": TOOLS, "input": history}


def compact(running: Running, history: list[Body], headers: dict[str, str] = CODEX) -> Body:
    """The item that stands for the history from now on."""
    body = codex_body([*history, {"type": "compaction_trigger"}])
    status, answer, _ = running.ask("/v1/responses", body, headers)
    assert status == 200
    done = [json.loads(line[5:]) for line in answer.decode().splitlines() if line.startswith("data:")]
    assert done[-1]["type"] == "response.completed"
    [item] = done[-1]["response"]["output"]
    return item


def test_codex_gets_a_handle_that_is_expanded_also_after_a_restart_and_in_a_fork(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "64k")
    history = [*CODEX_OPENING, *(item for number in range(10) for item in items(number))]
    handle = compact(running, history)
    assert (handle["type"], upstream.bodies) == ("compaction", [])
    running.close()
    running = gateway("--window", "64k")
    later = [*CODEX_OPENING, handle, said("user", "Which ticket was it?")]
    for headers in (CODEX, {**CODEX, "thread-id": "another", "session-id": "another"}):
        assert running.ask("/v1/responses", codex_body(later), headers)[0] == 200
        sent = upstream.requests[-1]["input"]
        assert upstream.faults == []
        assert "QX-4711" in str(sent)
        assert "result 3" in str(sent) or "step" in str(sent) or "ctx:summary" in str(sent)
        assert sent[-1]["content"][0]["text"] == "Which ticket was it?"


def test_a_handle_is_replaced_by_its_summary_where_no_sidecar_can_be_asked(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "64k")
    handle = compact(running, [*CODEX_OPENING, *items(1)])
    running.close()
    running = gateway("--sidecar", "/no/such/program")
    later = [*CODEX_OPENING, handle, said("user", "Which ticket was it?")]
    assert running.ask("/v1/responses", codex_body(later), CODEX)[0] == 200
    assert upstream.faults == []
    assert "QX-4711" in str(upstream.requests[-1]["input"][1])


def test_a_responses_stream_that_fails_for_its_length_is_asked_for_again(
    gateway: Start, upstream: ModelApis
) -> None:
    def refuse(body: Body, number: int) -> web.StreamResponse | str:
        error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}
        failed = {"type": "response.failed", "response": {"id": "r", "error": error}}
        text = 'event: response.created\ndata: {"type":"response.created"}\n\n'
        text += f"event: response.failed\ndata: {json.dumps(failed)}\n\n"
        too_long = prompt_tokens(body) > 9_000
        return web.Response(text=text, content_type="text/event-stream") if too_long else f"answer {number}"

    upstream.script = refuse
    running = gateway("--window", "200k")
    history = [*CODEX_OPENING]
    for number in range(40):
        _, answer, _ = running.ask("/v1/responses", codex_body(history), CODEX)
        assert b"response.completed" in answer
        assert b"response.failed" not in answer
        history += items(number)
    assert upstream.faults == []


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstd.compress)]
)
def test_compressed_requests_and_answers_are_understood(
    gateway: Start, upstream: ModelApis, encoding: str, packed: Callable[[bytes], bytes]
) -> None:
    usage = {"usage": {"input_tokens": 1234, "input_tokens_details": {"cached_tokens": 1000}}}
    upstream.script = lambda _body, _number: web.Response(
        body=packed(json.dumps(usage).encode()),
        headers={"content-encoding": encoding, "content-type": "application/json"},
    )
    running = gateway("--window", "16k")
    history = [*CODEX_OPENING, *(item for number in range(30) for item in items(number))]
    headers = {**CODEX, "content-encoding": encoding, "accept-encoding": f"br, {encoding};q=0.5"}
    body = json.dumps(codex_body(history)).encode()
    status, answer, _ = running.ask("/v1/responses", packed(body), headers)
    assert (status, answer) == (200, packed(json.dumps(usage).encode()))
    sent = {name.lower(): value for name, value in upstream.headers[-1].items()}
    assert b"line 3.93 of the log" not in upstream.bodies[-1], "it was rewritten"
    assert "content-encoding" not in sent
    assert sent["accept-encoding"] == f"{encoding};q=0.5"
    running.ask("/v1/responses", packed(body)[:-20], headers)  # what is damaged is the provider's to judge
    running.close()
    [row] = running.savings()
    assert (row["requests"], row["sent"], row["cacheRead"]) == (1, 1234, 1000)


def test_a_program_of_chat_completions_gets_an_engine_too(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "8k")
    history: list[Body] = [{"role": "system", "content": "Be brief."}]
    for number in range(40):
        history.append({"role": "user", "content": f"question {number} " + "about the weather in Rome " * 30})
        body = {"model": "local", "stream": True, "max_tokens": 500, "messages": history}
        assert running.ask("/v1/chat/completions", body)[0] == 200
        history.append({"role": "assistant", "content": f"answer {number} " + "rain is likely again " * 20})
    sent = upstream.requests
    assert upstream.faults == []
    assert len(sent[-1]["messages"]) < len(history)
    assert all(prompt_tokens(body) + 500 <= 8_000 for body in sent)


def test_a_hundred_requests_at_once_get_their_own_answers(gateway: Start, upstream: ModelApis) -> None:
    upstream.script = lambda body, _number: f"to {body['messages'][0]['content'][0]['text']}"
    running = gateway("--window", "16k")

    def converse(name: str) -> bool:
        history: list[Body] = [{"role": "user", "content": [{"type": "text", "text": f"program {name}"}]}]
        history += [message for number in range(20) for message in called(number)]
        headers = {**CLAUDE, "x-claude-code-session-id": name}
        status, answer, _ = running.ask("/v1/messages", claude_body(history), headers)
        return status == 200 and f"to program {name}" in answer.decode()

    assert converse("the first")
    sidecars = children_of(running.process.pid)
    with ThreadPoolExecutor(100) as programs:
        assert all(programs.map(converse, (f"p{number:03}" for number in range(100))))
    assert upstream.faults == []
    assert children_of(running.process.pid) == sidecars, "one that is busy is not ended"


def test_everything_else_is_passed_through_unread(gateway: Start, upstream: ModelApis) -> None:
    running = gateway()
    assert json.loads(running.ask("/v1/models?limit=5", b"", {}, "GET")[1]) == {
        "path": "/v1/models?limit=5",
        "method": "GET",
    }
    counted = b'{ "model": "claude-x", "messages": [] }'
    running.ask("/v1/messages/count_tokens", counted, CLAUDE)
    off = json.dumps(claude_body([*OPENING, *called(1)])).encode()
    running.ask("/v1/messages", off, {**CLAUDE, "x-context-sidecar": "off"})
    assert upstream.bodies == [counted, off]
    assert not (running.state / "context.db").exists(), "no sidecar was needed"
    assert "x-context-sidecar" not in {name.lower() for name in upstream.headers[-1]}


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"messages":5}', b'{"messages":[1]}', b'{"messages":[{}]}', b"\xff"]
)
def test_a_request_of_no_known_form_is_the_providers_to_judge(
    gateway: Start, upstream: ModelApis, body: bytes
) -> None:
    upstream.script = lambda _body, _number: web.Response(status=400, body=b"no")
    running = gateway()
    for path in ("/v1/messages", "/v1/responses", "/v1/chat/completions"):
        status, _, _ = running.ask(path, body, CLAUDE)
        assert status in (200, 400, 500)
    assert running.ask("/v1/models", b"", {}, "GET")[0] == 200


def test_web_pages_and_upgrades_are_refused(gateway: Start, upstream: ModelApis) -> None:
    running = gateway()
    asks = codex_body([*CODEX_OPENING, {"type": "compaction_trigger"}])
    assert running.ask("/v1/models", b"", {"Host": "evil.example:80"}, "GET")[0] == 403
    for origin in ("https://evil.example", "http://127.0.0.1.evil.example", "null"):
        assert running.ask("/v1/responses", asks, {"Origin": origin})[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert running.ask("/v1/responses", b"", upgrade, "GET")[0] == 501
    assert not (running.state / "context.db").exists()
    assert running.ask("/v1/models", b"", {"Origin": "vscode-webview://1"}, "GET")[0] == 200


@pytest.mark.parametrize("target", ["http://evil.example/v1/models", "@evil.example/", ".evil.example/"])
def test_a_target_cannot_name_another_host(gateway: Start, target: str) -> None:
    assert sent_raw(gateway().port, f"GET {target} HTTP/1.1", "anthropic-version: 1") in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Content-Length: 4", "Content-Length: 5"),
        ("Transfer-Encoding: xchunked",),
        ("Content-Length : 4",),
        ("x-a: b\x00c", "Content-Length: 0"),
    ],
)
def test_headers_that_two_servers_may_read_differently_are_refused(
    gateway: Start, upstream: ModelApis, headers: tuple[str, ...]
) -> None:
    assert sent_raw(gateway().port, "POST /v1/models HTTP/1.1", *headers) == 400
    assert upstream.bodies == []


def test_headers_for_the_gateway_alone_do_not_reach_the_provider(gateway: Start, upstream: ModelApis) -> None:
    named = {"Connection": "keep-alive, X-Internal", "X-Internal": "1", "Proxy-Authorization": "Basic a"}
    gateway().ask("/v1/messages", claude_body([*OPENING, *called(1)]), {**CLAUDE, **named})
    sent = {name.lower() for name in upstream.headers[-1]}
    assert not sent & {"x-internal", "proxy-authorization", "connection"}
    assert "x-api-key" in sent


def sent_raw(port: int, *lines: str) -> int:
    """The status that answers to a request written by hand."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as connection:
        head = "\r\n".join([lines[0], f"Host: 127.0.0.1:{port}", *lines[1:]])
        connection.sendall(head.encode() + b"\r\n\r\n0\r\n\r\n")
        return int(connection.recv(4096).split()[1])


def test_no_key_reaches_the_store_the_logs_the_doctor_or_telemetry(
    gateway: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    config = tmp_path / "config.toml"
    config.write_text("[telemetry]\nenabled = true\n")
    serve = f"{COMMAND} serve --log-level debug --state-dir {tmp_path / 'state'} --config {config}"
    with Collector() as collector:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        running = gateway("--window", "16k", "--sidecar", f'sh -c "{serve} 2>{log}"')
        claude_session(running, 30)
        running.ask("/v1/responses", codex_body([*CODEX_OPENING, *items(1)]), CODEX)
        cookies = {**CLAUDE, "cookie": f"session={KEY}", "proxy-authorization": f"Basic {KEY}"}
        running.ask("/v1/messages", claude_body([*OPENING, *called(1)]), cookies)
        collector.span("context/assemble")
        said = running.close()
        exported = collector.bodies
    told = subprocess.run(
        [COMMAND, "doctor", "--json", "--state-dir", str(running.state), "--config", str(config)],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    files = [file for file in (log, *running.state.rglob("*")) if file.is_file()]
    assert b"context/assemble" in log.read_bytes()
    assert len(files) > 3
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in said + told.stdout + told.stderr
    assert KEY.encode() not in exported


def test_what_goes_wrong_inside_is_told_without_a_key_or_a_traceback(
    gateway: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from sidecar.gateway.messages_api import MessagesApi\n"
        "def fail(self, headers, body):\n"
        "    raise ValueError(str(dict(headers)))\n"
        "MessagesApi.read = fail\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{KEY}@127.0.0.1:9")
    running = gateway()
    assert running.ask("/v1/messages", claude_body([*OPENING, *called(1)]), CLAUDE)[0] == 200
    broken = gateway("--upstream-anthropic", "https://127.0.0.1:9")
    status, answer, _ = broken.ask("/v1/messages", claude_body([*OPENING, *called(1)]), CLAUDE)
    assert status == 502
    said = running.close() + broken.close() + answer.decode()
    assert "could not be read (ValueError)" in said
    assert KEY not in said
    assert "Traceback" not in said


def test_a_handle_counts_as_what_it_stands_for_in_savings(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "64k")
    history = [*CODEX_OPENING, *(item for number in range(10) for item in items(number))]
    later = [CODEX_OPENING[0], compact(running, history), said("user", "Which ticket was it?")]
    assert running.ask("/v1/responses", codex_body(later), CODEX)[0] == 200
    running.close()
    [row] = running.savings()
    assert row["wanted"] >= row["sent"] == upstream.counted[-1].prompt


def test_savings_agree_with_what_the_provider_counted(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "16k")
    history = claude_session(running, 50)
    running.close()
    [row] = running.savings()
    assert row["requests"] == 50
    assert row["sent"] == sum(count.prompt for count in upstream.counted)
    assert row["cacheRead"] == sum(count.cached for count in upstream.counted) > row["sent"] * 0.7
    sizes = [prompt_tokens(claude_body(history[: 2 + 3 * number])) for number in range(50)]
    assert row["wanted"] == pytest.approx(sum(sizes), rel=0.05)
    assert row["compactionsAvoided"] >= 1


def test_run_starts_a_program_with_the_gateway_and_ends_as_it_does(
    tmp_path: Path, upstream: ModelApis
) -> None:
    program = (
        "import os, sys, urllib.request\n"
        "assert '127.0.0.1' in os.environ['NO_PROXY']\n"
        "print(urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/models').read().decode())\n"
        "sys.exit(7)\n"
    )
    done = subprocess.run(
        [COMMAND, "run", "--upstream-openai", upstream.url, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path / "state")},
    )
    assert done.returncode == 7
    assert msgspec.json.decode(done.stdout) == {"path": "/v1/models", "method": "GET"}
    [line] = done.stderr.splitlines()
    assert "engine lossless" in line
    assert "window by model" in line
    assert line.endswith(f"sessions in {tmp_path / 'state'}")


@pytest.mark.parametrize(
    ("program", "environment", "reason"),
    [
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK"),
        ("codex", {}, "OPENAI_API_KEY"),
    ],
)
def test_run_refuses_what_would_go_past_the_gateway(
    tmp_path: Path, program: str, environment: dict[str, str], reason: str
) -> None:
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "ANTHROPIC"))
    }
    done = subprocess.run(
        [COMMAND, "run", "--", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**plain, "HOME": str(tmp_path), **environment},
    )
    assert done.returncode == 1
    assert reason in done.stderr


def test_the_recall_tools_over_mcp_find_what_the_engine_left_out(gateway: Start, upstream: ModelApis) -> None:
    running = gateway("--window", "16k")
    claude_session(running, 50)
    assert "line 7.93 of the log" not in str(upstream.requests[-1]["messages"])
    running.close()
    answers = asyncio.run(_recalled(running.state))
    offered = {tool.name for tool in answers.tools}
    assert {"context_search", "context_expand", "context_grep"} <= offered
    assert offered.isdisjoint({"context_status", "context_compact"}), "another process sends the context"
    assert "line 7.93 of the log" in answers.found
    assert not answers.failed
    assert "result 48:" in answers.transcript
    assert re.search(r"^\[\S+\] ", answers.summaries), answers.summaries[:200]
    assert "QX-4711" in answers.summaries


class Recalled(NamedTuple):
    """What a client of MCP got."""

    tools: list[mcp.types.Tool]
    found: str
    failed: bool
    transcript: str
    summaries: str


async def _recalled(state: Path) -> Recalled:
    server = mcp.StdioServerParameters(
        command=COMMAND, args=["mcp", "--state-dir", str(state), "--folder", str(state.parent)]
    )
    async with (
        asyncio.timeout(LIMIT_S),
        mcp.stdio_client(server) as streams,
        mcp.ClientSession(*streams) as client,
    ):
        await client.initialize()
        tools = (await client.list_tools()).tools
        found = await client.call_tool("context_search", {"mode": "search", "query": "line 7.93 of the log"})
        whole, summed_up = (await client.list_resources()).resources
        read, sums = await client.read_resource(whole.uri), await client.read_resource(summed_up.uri)
        text = "".join(part.text for part in found.content if isinstance(part, mcp.types.TextContent))
        return Recalled(tools, text, found.is_error, _text_of(read), _text_of(sums))


def _text_of(read: mcp.types.ReadResourceResult) -> str:
    return "".join(part.text for part in read.contents if isinstance(part, mcp.types.TextResourceContents))


def test_the_list_of_sessions_names_program_and_folder(
    gateway: Start, upstream: ModelApis, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = gateway("--window", "16k")
    claude_session(running, 3)
    running.close()
    monkeypatch.setenv("COLUMNS", "400")
    [entry] = running.listed()
    shown = subprocess.run(
        [COMMAND, "sessions", "list", "--namespace", "gateway", "--state-dir", str(running.state)],
        capture_output=True, text=True, timeout=LIMIT_S, check=True,
    ).stdout  # fmt: skip
    assert f"claude-code:{running.state.parent}" in shown
    assert entry["sessionId"] in shown


def test_an_editor_sees_the_sessions_of_the_gateway_and_what_the_model_would_see(
    gateway: Start, upstream: ModelApis
) -> None:
    running = gateway("--window", "16k")
    claude_session(running, 30)
    running.close()
    entry, messages = asyncio.run(_viewed(running.state))
    assert entry.message_format == "anthropic"
    assert entry.session_id.startswith("claude-code:5c0375b4-0000:")
    assert entry.message_count == 1 + 29 * 2
    assert 0 < len(messages) < entry.message_count


async def _viewed(state: Path) -> tuple[SessionEntry, list[bytes]]:
    """What the view of VS Code asks for: a list, and a preview on a copy in the session's own format."""
    async with SidecarClient.start(
        [COMMAND, "serve"], namespace="gateway", state_dir=state, engine="lossless"
    ) as client:
        [entry] = [entry async for entry in client.sessions()]
    async with SidecarClient.start(
        [COMMAND, "serve"],
        namespace="gateway",
        state_dir=state,
        engine="lossless",
        message_format="anthropic",
    ) as client:
        await client.fork(entry.session_id, "editor-preview:1")
        answer = await client.assemble("editor-preview:1", 8_000)
        assert (await client.explain("editor-preview:1", result_id=answer.result_id)).decisions
        await client.delete("editor-preview:1")
    return entry, answer.bodies
