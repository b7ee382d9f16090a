"""Any body gets at most one answer, and the connection stays in step."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.conftest import LiveServer
from tests.wire.harness import frame

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    ["initialize", "initialized", "$/cancelRequest", "$/setTrace", "$/progress", "x", ""]
)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers() | st.text(max_size=5).map(lambda text: "id" + text) | values,
        "method": methods | values.filter(lambda value: value not in ("exit", "shutdown")),
        "params": values,
        "result": values,
        "error": values,
    },
)
bodies = st.binary(max_size=60) | (values | envelopes).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
)


@given(st.lists(bodies, min_size=1, max_size=5))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_gets_at_most_one_answer(live_servers: LiveServer, found: list[bytes]) -> None:
    server = live_servers.server()
    server.send(b"".join(frame(body) for body in found))
    live_servers.count += 1
    last = f"last-{live_servers.count}"
    server.send(frame(json.dumps({"jsonrpc": "2.0", "id": last, "method": "nothing/known"})))
    answers = 0
    while (message := server.read()).get("id") != last:
        assert message["error"]["data"]["hint"]
        answers += 1
    assert answers <= len(found)
    live_servers.ping()


@given(st.binary(max_size=200), st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_requests_are_answered(live_servers: LiveServer, noise: bytes, data: st.DataObject) -> None:
    body = bytearray(
        b'{"jsonrpc":"2.0","id":7,"method":"nothing/known","params":{"text":"caf\xc3\xa9 \\ud83d"}}'
    )
    for byte in noise[:3]:
        body[data.draw(st.integers(0, len(body) - 1))] = byte
    server = live_servers.server()
    server.send(frame(bytes(body)))
    live_servers.ping(passing_over=1)
