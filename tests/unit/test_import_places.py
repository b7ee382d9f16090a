"""Every imported message knows the place in its source from which it was read."""

from __future__ import annotations

import json
from io import BytesIO
from typing import IO, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.messages.importers import Imported, read
from sidecar.messages.importers.documents import salvage

MARK = b"\xef\xbb\xbf"


class Text:
    """A source that is not a file."""

    def __init__(self, data: bytes | str) -> None:
        self.data = data if isinstance(data, bytes) else data.encode()

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        return BytesIO(self.data)

    def read_bytes(self) -> bytes:
        return self.data

    def piece(self, item: Imported) -> bytes:
        return self.data[item.span.start : item.span.end]


def say(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": text}


def pi_row(id_: str, parent: str | None, text: str) -> str:
    row = {"type": "message", "id": id_, "parentId": parent, "timestamp": "2026-01-02T03:04:05Z"}
    return json.dumps({**row, "message": say("user", text)}, ensure_ascii=False)


@pytest.mark.parametrize("mark", [b"", MARK], ids=["plain", "marked"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a_line_is_the_place_of_its_message(mark: bytes, end: bytes) -> None:
    rows = [pi_row("a", None, "你好"), "", "{broken", pi_row("b", "a", "two")]
    source = Text(mark + end.join(row.encode() for row in rows))
    items = read(source, "pi").items
    assert [source.piece(item) for item in items] == [rows[0].encode(), rows[3].encode()]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("mark", [b"", MARK], ids=["plain", "marked"])
@pytest.mark.parametrize("wrap", ["array", "body"])
def test_an_object_is_the_place_of_its_message(indent: int | None, mark: bytes, wrap: str) -> None:
    messages = [say("user", "你好"), say("assistant", "{}"), say("user", "你好")]
    document: object = messages if wrap == "array" else {"model": "m", "messages": messages}
    source = Text(mark + b"\n " + json.dumps(document, ensure_ascii=False, indent=indent).encode() + b"\n")
    items = read(source).items
    assert [json.loads(source.piece(item)) for item in items] == messages
    assert len({item.span for item in items}) == 3


def test_lone_surrogates_do_not_move_the_places() -> None:
    source = Text(
        r'{"note": "\ud83d", "messages": [{"role": "user", "content": "\ude00"}, '
        r'{"role": "user", "content": "b"}]}'
    )
    assert [source.piece(item)[:8] for item in read(source).items] == [b'{"role":'] * 2
    assert json.loads(source.piece(read(source).items[1]))["content"] == "b"


@pytest.mark.parametrize("frame", ["%s", '{"messages": %s}', '{"history": %s, "trajectory": []}'])
def test_documents_with_lone_surrogates_are_read(frame: str) -> None:
    message = rb'{"role": "user", "content": "cut \ud83d"}'
    (item,) = read(Text(frame.encode() % (b"[" + message + b"]"))).items
    assert json.loads(item.message)["content"] in ("cut \ud83d", "cut \ufffd")
    if "history" not in frame:
        assert item.message == message


def test_a_trajectory_s_entries_have_places() -> None:
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "u", "agent": "main"}]
    source = Text(json.dumps({"trajectory": [], "history": history, "info": {}}, indent=1))
    assert [json.loads(source.piece(item)) for item in read(source).items] == history


def test_whole_messages_of_a_torn_document_are_found() -> None:
    messages = [say("user", "一"), say("assistant", 'a "{" b'), say("user", "three")]
    whole = json.dumps({"messages": messages}, ensure_ascii=False, indent=2)
    source = Text(whole[: whole.index('"three"') + 3])
    found = salvage(source).items
    assert [json.loads(source.piece(item)) for item in found] == messages[:2]
    assert [json.loads(item.message) for item in found] == messages[:2]


def test_a_message_being_typed_does_not_hide_later_ones() -> None:
    messages = [say("user", "one"), say("assistant", "two"), say("user", "three")]
    text = json.dumps(messages, indent=2).replace('"two"', '"tw')
    assert [json.loads(item.message) for item in salvage(Text(text)).items] == [messages[0], messages[2]]


@given(st.text(alphabet='{}[]":,ar\\ \nrole1é', max_size=200) | st.binary(max_size=100))
def test_salvage_never_raises(text: str | bytes) -> None:
    source = Text(text)
    for item in salvage(source).items:
        assert "role" in json.loads(source.piece(item))


def test_objects_that_never_end_are_given_up_soon() -> None:
    """Looking into each of them would take time that grows with the square of the length."""
    assert salvage(Text('{"a":' * 200_000)).items == []
    assert salvage(Text("[" + '{"a":1},' * 200_000)).items == []
