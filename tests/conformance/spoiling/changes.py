"""What can be done to a message on its way, as the parts of which broken servers are made."""

from collections.abc import Callable
from typing import Any

from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

When = Callable[[Message], bool]
GONE = object()
"""In place of a value: remove the member."""


def replies(what: str, pointer: str, value: object, *methods: str) -> Spoilt:
    """Sets a member of the answers to these methods (to all, where none is named), if its parent is there.

    `value` may be a function of the old value.
    """

    def reply(_: Proxy, message: Message, asked: Message) -> Message:
        if "method" not in message and (not methods or asked.get("method") in methods):
            put(message, pointer, value)
        return message

    return Spoilt(what, reply=reply)


def sends(what: str, pointer: str, value: object, *methods: str) -> Spoilt:
    """Sets a member of the server's own requests and notifications of these methods."""

    def reply(_: Proxy, message: Message, asked: Message) -> Message:
        if message.get("method") in methods:
            put(message, pointer, value)
        return message

    return Spoilt(what, reply=reply)


def takes(what: str, pointer: str, value: object, *methods: str) -> Spoilt:
    """Sets a member of the params of what the host asks, before the server sees it."""

    def request(_: Proxy, message: Message) -> Message:
        if message.get("method") in methods:
            put(message, f"/params{pointer}", value)
        return message

    return Spoilt(what, request=request)


def codes(what: str, old: int, new: int, *methods: str) -> Spoilt:
    """Gives errors another code."""
    return replies(what, "/error/code", lambda code: new if code == old else code, *methods)


def refuses(what: str, code: int, when: When) -> Spoilt:
    """Answers the requests of which `when` is true with an error, whatever the server made of them."""

    def reply(_: Proxy, message: Message, asked: Message) -> Message:
        return error(message["id"], code) if asked and when(asked) else message

    return Spoilt(what, reply=reply)


def grants(what: str, result: Any, when: When) -> Spoilt:
    """Answers the requests of which `when` is true with a result, whatever the server made of them."""

    def reply(_: Proxy, message: Message, asked: Message) -> Message:
        return {"jsonrpc": "2.0", "id": message["id"], "result": result} if asked and when(asked) else message

    return Spoilt(what, reply=reply)


def gives_up(what: str, when: Callable[[bytes], bool]) -> Spoilt:
    """Ends the connection, as after a fatal frame, where `when` is true of bytes that were read at once."""

    def data(proxy: Proxy, data: bytes) -> bytes:
        if when(data):
            proxy.say(error(None, -32600))
            proxy.end(1)
        return data

    return Spoilt(what, data=data)


def runs(what: str, method: str, other: str) -> Spoilt:
    """Has the server do something else in place of a method."""

    def request(_: Proxy, message: Message) -> Message:
        if message.get("method") == method:
            message["method"] = other
        return message

    return Spoilt(what, request=request)


def also(what: str, when: When, method: str, params: Callable[[Message], Message]) -> Spoilt:
    """Has the server do something more, before it does what it is asked for."""

    def request(proxy: Proxy, message: Message) -> Message:
        if when(message):
            proxy.ask(method, params(message["params"]))
        return message

    return Spoilt(what, request=request)


def asked(method: str, pointer: str = "", value: object = None) -> When:
    """Whether a request is of this method, with this value at the place in its params."""
    return lambda message: (
        message.get("method") == method and (not pointer or at(message, f"/params{pointer}") == value)
    )


def error(id: object, code: int, text: str = "no") -> Message:
    """An error as a server answers it."""
    data = {"retryable": False, "hint": "none"}
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data}}


def at(value: Any, pointer: str) -> Any:
    """What is at a JSON Pointer, `None` where nothing is."""
    for part in pointer.split("/")[1:]:
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def put(message: Message, pointer: str, value: object) -> None:
    """Set what is at a JSON Pointer, where its parent is there; `*` stands for every item of a list."""
    before, _, last = pointer.rpartition("/")
    head, star, tail = before.partition("/*")
    if star:
        for index in range(len(at(message, head) or ())):
            put(message, f"{head}/{index}{tail}/{last}", value)
        return
    parent = at(message, before)
    if not isinstance(parent, dict):
        return
    if value is GONE:
        parent.pop(last, None)
    elif not callable(value):
        parent[last] = value
    elif last in parent:
        parent[last] = value(parent[last])
