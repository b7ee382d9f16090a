"""Servers that are broken in how they cut bytes into messages."""

import re

from tests.conformance.spoiling.changes import GONE, codes, error, gives_up, replies
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_PING = "conformance/unknownMethod"
_SIZE = re.compile(rb"Content-Length: (\d+)\r\n\r\n")
_TWO_SIZES = re.compile(rb"Content-Length: (\d+)\r\nContent-Length: \1\r\n")


def _misnamed(_: Proxy, raw: bytes, asked: Message) -> bytes:
    return raw.replace(b"Content-Length", b"Size") if asked.get("method") == _PING else raw


def is_cut(data: bytes) -> bool:
    """Whether the bytes are anything but one whole frame."""
    head = _SIZE.match(data)
    return head is None or len(data) != head.end() + int(head[1])


def counts_characters(_: Proxy, data: bytes) -> bytes:
    """Lengths as they come out where characters are read for bytes."""

    def longer(head: re.Match[bytes]) -> bytes:
        length = int(head[1])
        body = data[head.end() :][:length]
        more = len(body) - len(body.decode("utf-8", "replace"))
        return b"Content-Length: %d\r\n\r\n" % (length + more)

    return _SIZE.sub(longer, data)


def _framed(proxy: Proxy, raw: bytes, _: Message) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(raw) - 1, raw[:-1]) if raw[:1] == b"{" else raw


def _searched(_: Proxy, data: bytes) -> bytes:
    """Bytes with what looks like a frame inside a broken body told once more, as a frame."""
    _, broken, hidden = data.partition(b"{not json ")
    return data + hidden if broken else data


def _said_twice(proxy: Proxy, message: Message, _: Message) -> Message:
    if message.get("id") is None and "error" in message:
        proxy.say(error(None, -32600))
    return message


SPOILT = {
    "framing/header_framing": Spoilt("names the length of its answers otherwise", written=_misnamed),
    "framing/header_names_in_any_case_and_order": gives_up(
        "gives up at headers it does not know", lambda data: b"x-other" in data
    ),
    "framing/header_lines_that_end_with_lf": gives_up(
        "gives up at a header line without CR",
        lambda data: b"\n\n{" in data,
    ),
    "framing/equal_lengths": gives_up(
        "gives up at a second length, whatever it is", lambda data: _TWO_SIZES.search(data) is not None
    ),
    "framing/other_charset": codes("takes another charset for a wrong envelope", -32700, -32600),
    "framing/frames_cut_anywhere": gives_up("takes every read for one frame", is_cut),
    "framing/length_in_bytes": Spoilt("counts characters where bytes are meant", data=counts_characters),
    "framing/newline_framing": Spoilt("answers lines with frames", written=_framed),
    "framing/newline_framing_is_lenient": gives_up(
        "gives up at a byte order mark", lambda data: data[:3] == b"\xef\xbb\xbf"
    ),
    "framing/nothing_else_on_standard_output": Spoilt("prints a farewell", last=b"bye\n"),
    "framing/length_missing": Spoilt("ends with status 0 where a length is missing", status=lambda _: 0),
    "framing/length_negative": codes("takes a negative length for bad JSON", -32600, -32700),
    "framing/length_not_digits": Spoilt("ends with status 2 at a length like 0x10", status=lambda _: 2),
    "framing/lengths_that_differ": Spoilt("answers two lengths with two errors", reply=_said_twice),
    "framing/headers_too_long": Spoilt("ends with status 0 where headers never end", status=lambda _: 0),
    "framing/header_without_colon": codes("takes a line without a colon for bad JSON", -32600, -32700),
    "framing/length_out_of_proportion": codes("takes any length for a large body", -32600, -32603),
    "framing/no_search_for_the_next_header": Spoilt("looks for headers inside bodies", data=_searched),
    "framing/body_over_the_limit": replies("keeps its limit to itself", "/error/data/limit", GONE),
    "framing/line_over_the_limit": codes("takes a long line for bad JSON", -32600, -32700),
}
