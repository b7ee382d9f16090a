"""Messages come back as the very bytes that went in."""

from collections.abc import Callable

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host

ODD = [
    '{"role":"user","content":"x","n":1.0e5,"m":12345678901234567890,"z":-0,"e":1E+2,"f":0.10}',
    '{"content":"key order","role":"user","b":1,"a":2}',
    '{"role":"user","content":"\\u00e9 \\u0041 \\/ \\b\\f \\ud83d\\ude00 é 😀"}',
    '{"role":"user","content":"cut \\ud83d","k\\ud83d":"\\udc00"}',
    '{"role":"user","content":"twice","x":1,"x":2,"role":"user"}',
    '{ "role" : "user" ,  "content" : "spaces" , "list" : [ 1 , 2 ] }',
    '{"role":"user","content":"unknown","deep":{"a":[{"b":null,"c":[[],{}]}]},"tags":["<x>","&amp;"]}',
    '{"role":"narrator","content":"an unknown role"}',
    '{"type":"custom_event","payload":{"n":1e400}}',
    '{"role":"user","content":"\\u0000 \\u001f \\u2028 \x7f"}',
    '{"role":"user","content":null}',
    '{"role":"assistant","content":[{"type":"text","text":"a","unknown":true}],"usage":{"input":1.50}}',
]


def ingest_raw(host: Host, session: str, message: str, **members: str) -> None:
    more = "".join(f',"{name}":{value}' for name, value in members.items())
    host.wait(host.send_raw("context/ingest", f'{{"sessionId":"{session}","message":{message}{more}}}'))


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("message", ODD)
def test_a_message_comes_back_byte_for_byte(
    hosts_of_both_framings: Callable[[bool], Host], session: str, lines: bool, message: str
) -> None:
    host = hosts_of_both_framings(lines)
    ingest_raw(host, session, message)
    batch = f'{{"sessionId":"{session}","messages":[{message},{message}]}}'
    host.wait(host.send_raw("context/ingestBatch", batch))
    answer = host.wait_raw(host.send("session/export", sessionId=session))
    for stored in answer.split(b'"message":')[1:]:
        assert stored.startswith(message.encode("utf-8", "surrogatepass"))
    assert answer.count(b'"message":') == 3


@pytest.mark.parametrize(
    "message", [m for m in ODD if '"role"' in m and "narrator" not in m and "null" not in m]
)
def test_an_assembled_message_is_byte_exact(host: Host, session: str, message: str) -> None:
    ingest_raw(host, session, message)
    answer = host.wait_raw(host.send("context/assemble", sessionId=session, tokenBudget=5000))
    assert message.encode() in answer


def test_messages_with_line_breaks_keep_them_between_headers(start_host: StartHost, session: str) -> None:
    host = start_host()
    message = '{\n\t"role": "user",\r\n  "content": "pretty"\n}'
    ingest_raw(host, session, message)
    assert message.encode() in host.wait_raw(host.send("session/export", sessionId=session))


def test_line_breaks_become_spaces_on_a_connection_of_lines(start_host: StartHost, session: str) -> None:
    headers, lines = start_host(), start_host(lines=True)
    ingest_raw(headers, session, '{\n\t"role": "user",\r\n  "content": "pretty"\n}')
    answer = lines.wait_raw(lines.send("session/export", sessionId=session))
    assert b'{ \t"role": "user",  ' in answer or b'{ \t"role": "user",   "content"' in answer


def test_bytes_survive_a_restart(start_host: StartHost, session: str) -> None:
    host = start_host()
    for message in ODD:
        ingest_raw(host, session, message)
    host.restart(kill=True)
    answer = host.wait_raw(host.send("session/export", sessionId=session))
    for message in ODD:
        assert message.encode("utf-8", "surrogatepass") in answer


def test_every_way_in_keeps_bytes(start_host: StartHost, session: str) -> None:
    host = start_host()
    for number, (method, member) in enumerate(
        [("bootstrap", ""), ("afterTurn", ""), ("commitTurn", ',"advancementKey":"k"')]
    ):
        listed = ",".join(ODD)
        params = f'{{"sessionId":"{session}{number}","messages":[{listed}]{member}}}'
        host.wait(host.send_raw(f"context/{method}", params))
        answer = host.wait_raw(host.send("session/export", sessionId=f"{session}{number}"))
        for message in ODD:
            assert message.encode("utf-8", "surrogatepass") in answer
