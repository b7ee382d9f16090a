"""Params decode tolerantly, and errors name the invalid member."""

from typing import Literal

import msgspec
import pytest
from msgspec import Raw, Struct

from sidecar.rpc.errors import InvalidParams, RpcError
from sidecar.rpc.router import Order, Route, Router


class Inner(Struct, rename="camel"):
    tool_name: str
    count: int = 0


class Params(Struct, rename="camel"):
    session_id: str
    limit: int = 10
    inner: Inner | None = None
    items: list[Inner] = []
    table: dict[str, int] = {}
    message: Raw = Raw()


def _decode(text: str) -> Params:
    return Route("x", Params).decode(Raw(text.encode()))


WRONG = [
    ('{"sessionId":5}', "/sessionId", "sessionId: expected `str`, got `int`"),
    ("{}", "/sessionId", "sessionId: required member is missing"),
    ('{"sessionId":null}', "/sessionId", "sessionId: required member is missing"),
    ('{"sessionId":"a","limit":1.5}', "/limit", "limit: expected `int`, got `float`"),
    ('{"sessionId":"a","inner":{}}', "/inner/toolName", "inner.toolName: required member is missing"),
    (
        '{"sessionId":"a","inner":{"toolName":null}}',
        "/inner/toolName",
        "inner.toolName: required member is missing",
    ),
    (
        '{"sessionId":"a","items":[{"toolName":"t"},{"toolName":1}]}',
        "/items/1/toolName",
        "items[1].toolName: ",
    ),
    ('{"sessionId":"a","items":[null]}', "/items/0", "items[0]: expected `object`, got `null`"),
    ('{"sessionId":"a","items":{}}', "/items", "items: expected `array`, got `object`"),
    ('{"sessionId":"a","table":{"k":"v"}}', "/table", "table: expected `int`, got `str`"),
    ("[]", "", "params must be an object"),
    ("7", "", "params must be an object"),
]


@pytest.mark.parametrize(("text", "pointer", "message"), WRONG, ids=[case[0] for case in WRONG])
def test_errors_name_the_member(text: str, pointer: str, message: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        _decode(text)
    assert caught.value.data["path"] == pointer
    assert caught.value.message.startswith(message)


def test_a_wrong_value_is_not_quoted_at_length() -> None:
    class Chosen(Struct):
        mode: Literal["a", "b"]

    with pytest.raises(InvalidParams) as caught:
        Route("x", Chosen).decode(Raw(b'{"mode":"%b"}' % (b"x" * 100_000)))
    assert len(caught.value.message) < 500


def test_null_counts_as_absent_at_every_depth() -> None:
    params = _decode(
        '{"sessionId":"a","limit":null,"inner":{"toolName":"t","count":null},'
        '"items":[{"toolName":"t"},{"toolName":"u","count":null}],"table":null}'
    )
    assert params == Params("a", 10, Inner("t"), [Inner("t"), Inner("u")])


def test_raw_members_keep_their_bytes_next_to_null_members() -> None:
    message = '{ "role" : "user", "n":1.50, "x":null }'
    params = _decode(f'{{"sessionId":"a","limit":null,"message":{message}}}')
    assert bytes(params.message) == message.encode()


@pytest.mark.parametrize("text", ["", "null", " {} "])
def test_absent_params_are_an_empty_object(text: str) -> None:
    class Optional(Struct):
        limit: int = 3

    assert Route("x", Optional).decode(Raw(text.encode())).limit == 3


def test_every_error_has_retryable_and_hint() -> None:
    plain = RpcError(5, "five", {"extra": 1})
    assert set(plain.data) == {"retryable", "hint", "extra"}
    assert RpcError(5, "five", retryable=True, hint="wait").data == {"retryable": True, "hint": "wait"}
    assert msgspec.json.decode(msgspec.json.encode(plain.body()))["data"]["retryable"] is False


def test_a_method_is_registered_once() -> None:
    router = Router()
    router.request("x", Params, lambda params, call: None)
    with pytest.raises(ValueError, match="already"):
        router.notification("x", Params, lambda params: None)


def test_an_order_needs_a_lane() -> None:
    with pytest.raises(ValueError, match="lane"):
        Router().request("x", Params, lambda params, call: None, order=Order.EXCLUSIVE)


class Chosen(Struct, rename="camel"):
    reason_given: Literal["deleted", "swept"] | None = None
    points: list[Literal["one", "two"]] = []
    by_name: dict[str, Literal["x"]] = {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"reasonGiven":"no"}', "reasonGiven: invalid enum value 'no', expected one of 'deleted', 'swept'"),
        ('{"points":["one","no"]}', "points[1]: invalid enum value 'no', expected one of 'one', 'two'"),
    ],
)
def test_an_invalid_value_is_reported_with_the_valid_ones(text: str, told: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        Route("x", Chosen).decode(Raw(text.encode()))
    assert caught.value.message == told
