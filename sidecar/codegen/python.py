"""Emits the Python client's requests: one typed method for each request of the method table."""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Listing,
    Member,
    NamedType,
    Null,
    Number,
    OneOf,
    Opaque,
    ProtocolModel,
    Ref,
    Shape,
    Text,
)
from sidecar.protocol.methods import Method

_WIDTH = 110

_BY_HAND = frozenset(("initialize", "shutdown", "context/assemble", "session/list", "session/export"))
"""Requests that `SidecarClient` implements by hand."""

_NAMES = {
    "subagent/ended": "subagent_ended",
    "memory/register": "register_memory",
    "memory/unregister": "unregister_memory",
    "memory/compile": "compile_memory",
    "tools/list": "tools",
    "tools/call": "call_tool",
    "engine/list": "engines",
    "session/get": "session",
}
"""Python names that differ from the last part of the method name."""

_POSITIONAL = {
    "context/bootstrap": ("messages",),
    "context/compact": ("token_budget",),
    "context/afterTurn": ("messages",),
    "context/maintain": ("token_budget",),
    "session/configure": ("session_id",),
    "tools/list": ("session_id",),
    "tools/call": ("arguments",),
}
"""Optional members that may be passed by position, after the required ones."""

_ANSWERS = {
    "session/pin": "pin_id",
    "session/unpin": "unpinned",
    "session/pins": "pins",
    "session/summaries": "summaries",
    "session/delete": "deleted",
    "subagent/prepareSpawn": "preparation_id",
    "subagent/rollbackSpawn": "rolled_back",
    "memory/register": "registered",
    "memory/unregister": "unregistered",
    "tools/list": "tools",
    "engine/list": "engines",
}
"""Methods that return one member of their result; others return the whole result."""

_RESULTS = {"context/ingest": "IngestedMessage"}
"""Result types of the client that replace the protocol's."""

_ABOUT = ("session_key", "agent_id", "work_done_token")

_HEAD = '''\
# Generated from sidecar/protocol by `make schema`; do not edit.
"""The requests of the client, in the order of the method table."""

from __future__ import annotations

'''

_BASE = '''\
T = TypeVar("T")


class AboutSession(TypedDict, total=False):
    """Optional arguments of every request about a session."""

    session_key: str
    """Alias of the session."""
    agent_id: str
    """Owner of the session."""
    work_done_token: ProgressToken
    """Token under which progress is reported."""


class Requests:
    """A method for each request. `sidecar.protocol` documents params and results, `client.errors` errors."""

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_s: float | None = None
    ) -> T:
        """Send any request; `timeout_s` is in seconds, by default the client's own, 0 means no limit."""
        raise NotImplementedError
'''


def emit_python(model: ProtocolModel) -> str:
    """The text of `requests.py`."""
    requests = [_Request.of(method, model) for method in model.methods if _is_sent(method)]
    text = "\n".join([_BASE, *(_method(request) for request in requests)])
    return _HEAD + _imports(text, model) + "\n" + text


def _is_sent(method: Method) -> bool:
    return method.kind == "request" and method.direction == "hostToServer" and method.name not in _BY_HAND


class _Request(NamedTuple):
    method: Method
    params: NamedType
    result: NamedType

    @classmethod
    def of(cls, method: Method, model: ProtocolModel) -> "_Request":
        params, result = (
            named._replace(
                members=tuple(
                    member._replace(shape=_spelled_out(member.shape, model)) for member in named.members
                )
            )
            for named in (model.types[method.params], model.types[method.result or ""])
        )
        return cls(method, params, result)

    @property
    def result_type(self) -> str:
        """The type as which the result is decoded."""
        return _RESULTS.get(self.method.name, self.result.name)

    @property
    def takes_about(self) -> bool:
        """Whether the request accepts the arguments of `AboutSession`."""
        return {*_ABOUT, "session_id"} <= {_snake(member.name) for member in self.params.members}


def _spelled_out(shape: Shape, model: ProtocolModel) -> Shape:
    """The shape with named values replaced by their shapes, except `Message`."""
    match shape:
        case Ref() if shape.name in model.values and shape.name != "Message":
            return model.values[shape.name].shape
        case Listing():
            return Listing(_spelled_out(shape.item, model))
        case OneOf():
            return OneOf(tuple(_spelled_out(option, model) for option in shape.options))
        case _:
            return shape


def _method(request: _Request) -> str:
    method, members = request.method, list(request.params.members)
    if request.takes_about:
        members = [member for member in members if _snake(member.name) not in _ABOUT]
    by_position = _POSITIONAL.get(method.name, ())
    required = [member for member in members if member.required]
    first = required + [member for member in members if _snake(member.name) in by_position]
    rest = [member for member in members if member not in first]
    signature = ["self", *map(_parameter, first), *(["*"] if rest else []), *map(_parameter, rest)]
    arguments = [f"{_snake(member.name)}={_argument(member)}" for member in members]
    if request.takes_about:
        signature.append("**about: Unpack[AboutSession]")
        arguments.append("**about")
    returned, answer = _returned(request)
    name = _NAMES.get(method.name, _snake(method.name.rpartition("/")[2]))
    send = f'self.request("{method.name}", params, {request.result_type})'
    lines = [
        *_call(f"async def {name}", signature, f" -> {returned}:", "    "),
        *_documentation(method),
        *_call(f"params = {method.params}", arguments, "", "        "),
        *_statement(answer, f"await {send}"),
    ]
    return "\n".join(lines) + "\n"


def _statement(answer: str, send: str) -> list[str]:
    line = f"        {answer.format(send=send)}"
    if len(line) <= _WIDTH:
        return [line]
    head, tail = answer.split("{send}")
    return [f"        {head}", f"            {send}", f"        {tail}"]


def _returned(request: _Request) -> tuple[str, str]:
    """The return type of the method, and its last statement."""
    members = {_snake(member.name): member for member in request.result.members}
    if part := _ANSWERS.get(request.method.name):
        words = _type(members[part].shape, given=False)
        optional = "" if members[part].required else " | None"
        return words + optional, f"return ({{send}}).{part}"
    if any(member.required for member in members.values()):
        return request.result_type, "return {send}"
    return "None", "{send}"


def _parameter(member: Member) -> str:
    words = f"{_snake(member.name)}: {_type(member.shape, given=True)}"
    if member.required:
        return words
    return f"{words} = None" if words.endswith(": object") else f"{words} | None = None"


def _argument(member: Member) -> str:
    """The expression that converts the parameter to the member."""
    name = _snake(member.name)
    match member.shape:
        case Ref("Message"):
            return f"encode_message({name})"
        case Listing(Ref("Message")):
            made = f"encode_messages({name})"
        case Listing():
            made = f"list({name})"
        case Opaque():
            made = f"encode_{'object' if member.shape.is_object else 'value'}({name})"
        case _:
            return name
    if member.required:
        return made
    return f"{'ABSENT' if isinstance(member.shape, Opaque) else None} if {name} is None else {made}"


def _type(shape: Shape, given: bool) -> str:
    """The type of a member as an argument (`given`) or as part of a result."""
    match shape:
        case Ref():
            return shape.name
        case Listing():
            return f"{'Iterable' if given else 'list'}[{_type(shape.item, given)}]"
        case OneOf():
            return " | ".join(dict.fromkeys(_type(option, given) for option in shape.options))
        case Choice():
            return f"Literal[{', '.join(json.dumps(value) for value in shape.values)}]"
        case Opaque():
            return "Mapping[str, object] | bytes" if shape.is_object else "object"
        case Text():
            return "str"
        case Number():
            return "int" if shape.integer else "float"
        case Boolean():
            return "bool"
        case Null():
            return "None"


def _documentation(method: Method) -> list[str]:
    if not method.errors:
        return [f'        """{method.summary}"""']
    return [f'        """{method.summary}', "", f"        Raises: {', '.join(method.errors)}.", '        """']


def _call(head: str, parts: Iterable[str], tail: str, indent: str) -> list[str]:
    """A call or a signature, broken into lines as the formatter does."""
    parts = list(parts)
    line = f"{indent}{head}({', '.join(parts)}){tail}"
    if len(line) <= _WIDTH:
        return [line]
    joined = f"{indent}    {', '.join(parts)}"
    if len(joined) <= _WIDTH:
        return [f"{indent}{head}(", joined, f"{indent}){tail}"]
    return [f"{indent}{head}(", *(f"{indent}    {part}," for part in parts), f"{indent}){tail}"]


def _imports(text: str, model: ProtocolModel) -> str:
    """The imports that the text needs, in the linter's order."""
    known = {
        **{name: f"sidecar.protocol.{named.module}" for name, named in model.types.items()},
        "Iterable": "collections.abc",
        "Mapping": "collections.abc",
        **dict.fromkeys(("Literal", "TypedDict", "TypeVar", "Unpack"), "typing"),
        **dict.fromkeys(
            (
                "IngestedMessage",
                "Message",
                "encode_message",
                "encode_messages",
                "encode_object",
                "encode_value",
            ),
            "sidecar.client.messages",
        ),
        **dict.fromkeys(("ABSENT", "ProgressToken"), "sidecar.protocol.base"),
    }
    used = set(re.findall(r"\b[A-Za-z_]+\b", re.sub(r'""".*?"""', "", text, flags=re.S)))
    modules: dict[str, list[str]] = {}
    for name in known.keys() & used:
        modules.setdefault(known[name], []).append(name)
    blocks: list[str] = []
    for module in sorted(modules, key=lambda module: (module.startswith("sidecar"), module)):
        names = sorted(
            modules[module], key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower())
        )
        if module.startswith("sidecar") and not any("sidecar" in block for block in blocks):
            blocks.append("")
        blocks += _import(module, names)
    return "\n".join(blocks) + "\n"


def _import(module: str, names: list[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    return [line] if len(line) <= _WIDTH else [f"from {module} import (", *(f"    {n}," for n in names), ")"]


def _snake(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()
