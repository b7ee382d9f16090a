"""Replacing lone surrogate escapes keeps everything else and is reversible."""

import json
import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sidecar.surrogates import conceal, mask

halves = st.integers(0xD800, 0xDFFF)
spelled = st.sampled_from(["%04x", "%04X"])
pieces = st.one_of(
    st.builds(lambda half, form: ("\\u" + form) % half, halves, spelled),
    st.sampled_from(
        [r"\ufffd", r"\uFFFD", r"\ufFfD", r"\ue000", r"\n", r"\"", r"\\", "\\\\u", r"\/", "ud800", "a"]
    ),
    st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]),
    st.sampled_from([r"\ud83d\ude00", r"\uD83D\uDE00", r"\ud83d\ud83d\ude00\ude00"]),
)
texts = st.lists(pieces, max_size=12).map(lambda parts: ('"' + "".join(parts) + '"').encode())


def _lenient(data: bytes) -> str:
    """The result of Python's own decoder, with lone halves as U+FFFD."""
    return re.sub("[\ud800-\udfff]", "�", json.loads(data))


@given(texts)
def test_a_masked_text_decodes_and_keeps_its_length(data: bytes) -> None:
    masked = mask(data)
    assert len(masked) == len(data)
    assert msgspec.json.decode(masked) == _lenient(data)


@given(texts)
def test_masking_changes_nothing_but_lone_halves(data: bytes) -> None:
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError:
        assert mask(data) != data
        assert conceal(data) is not None
    else:
        assert mask(data) == data
        assert conceal(data) is None


class Holder(msgspec.Struct, frozen=True):
    text: str
    raw: msgspec.Raw
    items: list[msgspec.Raw]
    members: dict[str, str]


@given(st.tuples(texts, texts, texts, texts, texts))
def test_a_veil_gives_back_raw_parts_and_shows_replacement_characters(parts: tuple[bytes, ...]) -> None:
    text, raw, item, name, value = parts
    body = b'{"text":%b,"raw":%b,"items":[%b,%b],"members":{%b:%b}}' % (text, raw, item, raw, name, value)
    veil = conceal(body)
    if veil is None:
        return
    assert len(veil.text) == len(body)
    assert veil.restore_bytes(veil.text) == body
    holder = veil.restore(msgspec.json.decode(veil.text, type=Holder))
    assert holder.text == _lenient(text)
    assert bytes(holder.raw) == raw
    assert [bytes(part) for part in holder.items] == [item, raw]
    assert holder.members == {_lenient(name): _lenient(value)}


def test_many_different_halves_stay_distinct() -> None:
    body = b'["\\ue000","\xee\x80\x81",%b]' % b",".join(b'"\\u%04x"' % half for half in range(0xD800, 0xE000))
    veil = conceal(body)
    assert veil is not None
    assert veil.restore_bytes(veil.text) == body
    shown = veil.restore(msgspec.json.decode(veil.text, type=list[str]))
    assert shown == ["\ue000", "\ue001", *["�"] * 2048]


def test_more_kinds_of_halves_than_there_are_covers_are_refused_not_mixed_up() -> None:
    spellings = {
        b"\\u%b" % spelling for half in range(0xD800, 0xE000) for spelling in _spellings(b"%04x" % half)
    }
    assert conceal(b'["%b"]' % b'","'.join(sorted(spellings))) is None


def _spellings(digits: bytes) -> list[bytes]:
    found = [b""]
    for position in range(4):
        digit = digits[position : position + 1]
        found = [head + form for head in found for form in {digit.lower(), digit.upper()}]
    return found


def test_escaped_backslashes_do_not_count_as_escapes() -> None:
    assert mask(rb'"\\ud800 \\\ud800"') == rb'"\\ud800 \\\ufffd"'


def test_a_text_with_nul_is_left_alone() -> None:
    assert conceal(b'"\0\\ud800"') is None
