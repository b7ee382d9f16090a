"""Invalid bodies: each is answered with the right error, and the connection stays open."""

from typing import NamedTuple

from tests.wire.conftest import LiveServer
from tests.wire.harness import Target, frame

PARSE, REQUEST = -32700, -32600


class Case(NamedTuple):
    name: str
    body: bytes
    code: int
    id: int | str | None = None


def _call(members: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"method":"nothing/known","params":' + members + b"}"


CASES = [
    Case("a lone brace", b"{", PARSE),
    Case("plain words", b"hello there", PARSE),
    Case("a body cut short", b'{"jsonrpc":"2.0","id":7,"method":"x"', PARSE),
    Case("two values", b'{"jsonrpc":"2.0","id":7,"method":"x"} {}', PARSE),
    Case("a trailing comma", b'{"jsonrpc":"2.0","id":7,"method":"x",}', PARSE),
    Case("single quotes", b"{'jsonrpc':'2.0'}", PARSE),
    Case("a comment", b'{"jsonrpc":"2.0"/* no */}', PARSE),
    Case("a byte order mark", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"x"}', PARSE),
    Case("white space alone", b"  \r\n ", PARSE),
    Case("NUL bytes", b"\0\0\0\0", PARSE),
    Case("NaN in params", _call(b'{"a":NaN}'), PARSE),
    Case("Infinity in params", _call(b'{"a":Infinity}'), PARSE),
    Case("-Infinity in params", _call(b'{"a":[-Infinity]}'), PARSE),
    Case("a leading zero", _call(b'{"a":01}'), PARSE),
    Case("a plus sign", _call(b'{"a":+1}'), PARSE),
    Case("a bare decimal point", _call(b'{"a":1.}'), PARSE),
    Case("a hexadecimal number", _call(b'{"a":0x10}'), PARSE),
    Case("an unknown escape", _call(rb'{"a":"\q"}'), PARSE),
    Case("an unfinished escape", _call(rb'{"a":"\u12"}'), PARSE),
    Case("a raw line break in a string", _call(b'{"a":"x\ny"}'), PARSE),
    Case("a raw NUL in a string", _call(b'{"a":"x\0y"}'), PARSE),
    Case("a stray continuation byte in a string", _call(b'{"a":"\x80"}'), PARSE),
    Case("a cut UTF-8 sequence", _call(b'{"a":"\xe4\xb8"}'), PARSE),
    Case("an overlong UTF-8 sequence", _call(b'{"a":"\xc0\xaf"}'), PARSE),
    Case("a surrogate in UTF-8", _call(b'{"a":"\xed\xa0\x80"}'), PARSE),
    Case("Latin-1", _call('{"a":"é"}'.encode("latin-1")), PARSE),
    Case("UTF-16", '{"jsonrpc":"2.0"}'.encode("utf-16"), PARSE),
    Case("bad UTF-8 in an unknown member", b'{"jsonrpc":"2.0","id":7,"method":"x","z":"\xff"}', PARSE),
    Case("bad UTF-8 in a name", b'{"jsonrpc":"2.0","id":7,"method":"x","\xff":1}', PARSE),
    Case("100 000 nested arrays", _call(b"[" * 100_000 + b"]" * 100_000), PARSE),
    Case("100 000 open arrays", _call(b"[" * 100_000), PARSE),
    Case("100 000 nested objects", _call(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), PARSE),
    Case("an empty batch", b"[]", REQUEST),
    Case("a batch of one", b'[{"jsonrpc":"2.0","id":7,"method":"x"}]', REQUEST),
    Case("a batch of notifications", b'[{"jsonrpc":"2.0","method":"x"}]', REQUEST),
    Case("a string", b'"hello"', REQUEST),
    Case("a number", b"42", REQUEST),
    Case("null", b"null", REQUEST),
    Case("true", b"true", REQUEST),
    Case("an empty object", b"{}", REQUEST),
    Case("no jsonrpc", b'{"id":7,"method":"x"}', REQUEST, 7),
    Case("jsonrpc 1.0", b'{"jsonrpc":"1.0","id":7,"method":"x"}', REQUEST, 7),
    Case("jsonrpc as a number", b'{"jsonrpc":2.0,"id":7,"method":"x"}', REQUEST, 7),
    Case("jsonrpc null", b'{"jsonrpc":null,"id":7,"method":"x"}', REQUEST, 7),
    Case("no method", b'{"jsonrpc":"2.0","id":7}', REQUEST, 7),
    Case("method null", b'{"jsonrpc":"2.0","id":7,"method":null}', REQUEST, 7),
    Case("method as a number", b'{"jsonrpc":"2.0","id":7,"method":5}', REQUEST, 7),
    Case("method as an array", b'{"jsonrpc":"2.0","id":"a","method":["x"]}', REQUEST, "a"),
    Case("id null", b'{"jsonrpc":"2.0","id":null,"method":"x"}', REQUEST),
    Case("id true", b'{"jsonrpc":"2.0","id":true,"method":"x"}', REQUEST),
    Case("id 1.5", b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', REQUEST),
    Case("id 1.0", b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', REQUEST),
    Case("id 1e3", b'{"jsonrpc":"2.0","id":1e3,"method":"x"}', REQUEST),
    Case("id as an object", b'{"jsonrpc":"2.0","id":{},"method":"x"}', REQUEST),
    Case("id as an array", b'{"jsonrpc":"2.0","id":[1],"method":"x"}', REQUEST),
    Case("id with half a surrogate pair", rb'{"jsonrpc":"2.0","id":"\ud83d","method":"x"}', REQUEST),
    Case("an answer without jsonrpc", b'{"id":7,"result":{}}', REQUEST),
    Case("an unknown method", b'{"jsonrpc":"2.0","id":7,"method":"nothing/known"}', -32601, 7),
    Case("an empty method", b'{"jsonrpc":"2.0","id":7,"method":""}', -32601, 7),
    Case("a notification sent as a request", b'{"jsonrpc":"2.0","id":7,"method":"initialized"}', -32601, 7),
    Case("exit sent as a request", b'{"jsonrpc":"2.0","id":7,"method":"exit"}', -32601, 7),
    Case("cancel sent as a request", b'{"jsonrpc":"2.0","id":7,"method":"$/cancelRequest"}', -32601, 7),
    Case("half a surrogate pair in a method", rb'{"jsonrpc":"2.0","id":7,"method":"\udc00"}', -32601, 7),
    Case("half a surrogate pair in params", _call(rb'{"a":"\ud83d"}'), -32601, 7),
    Case("500 nested arrays", _call(b"[" * 500 + b"]" * 500), -32601, 7),
    Case(
        "an id of 40 digits", b'{"jsonrpc":"2.0","id":' + b"9" * 40 + b',"method":"x"}', -32601, int("9" * 40)
    ),
    Case("an id below zero", b'{"jsonrpc":"2.0","id":-5,"method":"x"}', -32601, -5),
    Case("an empty id", b'{"jsonrpc":"2.0","id":"","method":"x"}', -32601, ""),
    Case("an id with quotes", rb'{"jsonrpc":"2.0","id":"a\"b\\","method":"x"}', -32601, 'a"b\\'),
    Case("white space around the body", b' \r\n{"jsonrpc":"2.0","id":7,"method":"x"}\r\n ', -32601, 7),
    Case("members in another order", b'{"params":{},"method":"x","id":7,"jsonrpc":"2.0"}', -32601, 7),
    Case("unknown members", b'{"jsonrpc":"2.0","id":7,"method":"x","extra":{"jsonrpc":1}}', -32601, 7),
    Case("a name given twice", b'{"jsonrpc":"2.0","id":6,"id":7,"method":"x"}', -32601, 7),
]


def test_a_bad_body_is_answered_and_the_connection_lives_on(live: LiveServer) -> None:
    for case in CASES:
        live.server().send(frame(case.body))
        error = live.server().answer(case.id)["error"]
        assert error["code"] == case.code, f"{case.name}: {error}"
        assert error["data"]["retryable"] is False and error["data"]["hint"], f"{case.name}: {error}"
        live.ping()


IGNORED = [
    ("an unknown notification", b'{"jsonrpc":"2.0","method":"nothing/known"}'),
    ("an unknown protocol notification", b'{"jsonrpc":"2.0","method":"$/unknown","params":{}}'),
    ("a request method without an id", b'{"jsonrpc":"2.0","method":"shutdown"}'),
    ("an answer to nothing", b'{"jsonrpc":"2.0","id":99,"result":{}}'),
    ("an error for nothing", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}'),
    ("an error of a strange shape", b'{"jsonrpc":"2.0","id":99,"error":"?"}'),
    ("the cancelling of nothing", b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}'),
    ("cancel without an id", b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{}}'),
    ("cancel with a wrong id", b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1.5}}'),
    ("cancel without params", b'{"jsonrpc":"2.0","method":"$/cancelRequest"}'),
    ("trace set to a number", b'{"jsonrpc":"2.0","method":"$/setTrace","params":{"value":5}}'),
    ("trace set", b'{"jsonrpc":"2.0","method":"$/setTrace","params":{"value":"verbose"}}'),
]


def test_messages_that_need_no_answer_get_none(live: LiveServer) -> None:
    for name, body in IGNORED:
        live.server().send(frame(body))
        live.ping(about=name)


def test_params_that_are_not_an_object_are_invalid(live: LiveServer, target: Target) -> None:
    server = live.server()
    for params in (b"[]", b"[1]", b'"text"', b"5", b"true"):
        method = target.ping.encode()
        server.send(frame(b'{"jsonrpc":"2.0","id":7,"method":"%b","params":%b}' % (method, params)))
        error = server.answer(7)["error"]
        assert (error["code"], error["data"]["path"]) == (-32602, ""), f"params {params!r}: {error}"


def test_params_may_be_absent_null_or_richer(live: LiveServer, target: Target) -> None:
    server = live.server()
    for params in (b"", b',"params":null', b',"params":{}', b',"params":{"unknown":1}'):
        server.send(frame(b'{"jsonrpc":"2.0","id":7,"method":"%b"%b}' % (target.ping.encode(), params)))
        answer = server.answer(7)
        assert "result" in answer, f"{params!r}: {answer}"
