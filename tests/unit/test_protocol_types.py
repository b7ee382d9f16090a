import inspect
from importlib import import_module

import msgspec
import pytest
from msgspec import Raw

from sidecar.protocol.assemble import AssembleContextParams, AssembleContextResult, StablePrefix
from sidecar.protocol.base import ABSENT, Wire
from sidecar.protocol.context import IngestBatchContextParams, IngestContextParams, PreflightContextParams
from sidecar.protocol.engine import TextContent
from sidecar.protocol.lifecycle import InitializeParams
from sidecar.protocol.methods import METHODS
from sidecar.protocol.session import ConfigureSessionParams, PinSessionParams


def error_of(body: bytes, struct: type[Wire]) -> str:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=struct)
    return str(caught.value)


@pytest.mark.parametrize(
    "session_id", ["a", "a" * 1024, "\U0001f600" * 1024, "../../etc/passwd", " ", "a\nb\n"]
)
def test_a_session_id_is_any_key_of_1_to_1024_code_points(session_id: str) -> None:
    body = msgspec.json.encode({"sessionId": session_id, "message": {}})
    assert msgspec.json.decode(body, type=IngestContextParams).session_id == session_id


@pytest.mark.parametrize("session_id", ["", "a" * 1025, "a\0b", "\0", "a\n\0"])
def test_a_session_id_out_of_bounds_is_refused_with_its_path(session_id: str) -> None:
    body = msgspec.json.encode({"sessionId": session_id, "message": {}})
    assert "$.sessionId" in error_of(body, IngestContextParams)


@pytest.mark.parametrize("budget", ["0", "-1", "1.5", "true", '"1"', "9007199254740992", "1e400"])
def test_a_token_budget_that_is_not_a_positive_integer_is_refused_with_its_path(budget: str) -> None:
    body = f'{{"sessionId":"s","tokenBudget":{budget}}}'.encode()
    assert "$.tokenBudget" in error_of(body, PreflightContextParams)


def test_a_budget_of_null_means_the_same_as_no_budget() -> None:
    body = b'{"sessionId":"s","tokenBudget":null,"messages":null,"projection":null}'
    assert msgspec.json.decode(body, type=AssembleContextParams) == AssembleContextParams(session_id="s")


def test_a_required_budget_must_not_be_null() -> None:
    assert "$.tokenBudget" in error_of(b'{"sessionId":"s","tokenBudget":null}', PreflightContextParams)


def test_an_unknown_projection_is_refused_with_its_path() -> None:
    assert "$.projection" in error_of(b'{"sessionId":"s","projection":"x"}', AssembleContextParams)


def test_unknown_members_are_ignored() -> None:
    body = b'{"sessionId":"s","message":{},"runtimeContext":{"a":[1]}}'
    assert msgspec.json.decode(body, type=IngestContextParams).session_id == "s"


def test_messages_keep_their_bytes() -> None:
    message = b'{ "z":1.0, "role" : "user","a":1e2,"content":"\\u00e9" }'
    body = b'{"sessionId":"s","messages":[' + message + b"]}"
    assert bytes(msgspec.json.decode(body, type=IngestBatchContextParams).messages[0]) == message


def test_ids_of_a_batch_may_have_gaps() -> None:
    body = b'{"sessionId":"s","messages":[],"messageIds":["a",null]}'
    assert msgspec.json.decode(body, type=IngestBatchContextParams).message_ids == ["a", None]


def test_absent_members_are_not_written() -> None:
    result = AssembleContextResult(
        messages=[Raw(b'{"role":"user"}')],
        estimated_tokens=3,
        context_epoch=0,
        stable_prefix=StablePrefix(message_count=1, tokens=3),
        result_id="r1",
        composition=[],
    )
    assert set(msgspec.json.decode(msgspec.json.encode(result))) == {
        "messages",
        "estimatedTokens",
        "contextEpoch",
        "stablePrefix",
        "resultId",
        "composition",
    }


def test_an_absent_raw_member_is_not_written() -> None:
    params = ConfigureSessionParams(session_id="s", config=ABSENT)
    assert msgspec.json.encode(params) == b'{"sessionId":"s"}'


def test_a_tag_is_always_written() -> None:
    assert msgspec.json.decode(msgspec.json.encode(TextContent(text="x"))) == {"type": "text", "text": "x"}


@pytest.mark.parametrize("members", ["", ',"text":"a","messageId":"m"', ',"text":null'])
def test_a_pin_needs_exactly_one_of_message_and_text(members: str) -> None:
    assert "`messageId` and `text`" in error_of(
        b'{"sessionId":"s"' + members.encode() + b"}", PinSessionParams
    )


def test_configuring_needs_a_session_or_an_agent() -> None:
    assert "`sessionId` and `agentId`" in error_of(b'{"engine":"full"}', ConfigureSessionParams)


def test_initialize_needs_nothing_at_all() -> None:
    params = msgspec.json.decode(b"{}", type=InitializeParams)
    assert (params.process_id, params.initialization_options) == (None, None)


def test_the_dialect_is_chat_completions_unless_named() -> None:
    body = b'{"initializationOptions":{"contextEngine":{}}}'
    options = msgspec.json.decode(body, type=InitializeParams).initialization_options
    assert options is not None
    assert options.context_engine is not None
    assert options.context_engine.message_format == "openai"


def wire_types() -> list[type[Wire]]:
    modules = {method.module for method in METHODS} | {"base", "errors"}
    found: dict[str, type[Wire]] = {}
    for name in sorted(modules):
        for _, item in inspect.getmembers(import_module(f"sidecar.protocol.{name}"), inspect.isclass):
            if issubclass(item, Wire):
                found[item.__qualname__] = item
    return list(found.values())


def test_every_wire_type_is_frozen_and_camel_case() -> None:
    for struct in wire_types():
        config = struct.__struct_config__
        assert config.frozen and config.omit_defaults and not config.forbid_unknown_fields, struct
        assert not any("_" in name for name in struct.__struct_encode_fields__), struct
