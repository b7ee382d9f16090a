import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.client import decode_message, encode_message

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def joined(value: object) -> object:
    """Two halves of a pair that stand together are one character in JSON."""
    return json.loads(json.dumps(value))


@given(st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=4))
def test_a_dictionary_comes_back_whatever_text_it_holds(members: dict[str, object]) -> None:
    assert joined(decode_message(encode_message(members))) == joined(members)


@pytest.mark.parametrize(
    "message",
    [
        b'{"role" :"user","n":1.0}',
        b' {"a":"\\ud83d"} ',
        '{"a":"雨"}'.encode(),
        bytearray(b'{"a": {"b": []}}'),
    ],
)
def test_bytes_are_sent_unchanged(message: bytes | bytearray) -> None:
    assert bytes(encode_message(message)) == bytes(message)


@pytest.mark.parametrize(
    "message", [b"", b"[]", b'"text"', b'{"a":', b'{"a":1}}', b'{"a":1},"b":{}', b'{"a":"\xff"}', b"null"]
)
def test_bytes_that_would_break_the_request_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match="a message must be"):
        encode_message(message)


def test_a_struct_is_a_message_too() -> None:
    class Said(msgspec.Struct):
        role: str
        content: str

    assert bytes(encode_message(Said("user", "hi"))) == b'{"role":"user","content":"hi"}'


@pytest.mark.parametrize("message", ['{"role":"user"}', 3, None, [{"role": "user"}]])
def test_anything_else_is_not_a_message(message: object) -> None:
    with pytest.raises(TypeError):
        encode_message(message)  # pyright: ignore[reportArgumentType]
