"""Routes the methods of a language server's features from the connection to their handlers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Generator
from inspect import isawaitable, isgenerator
from typing import Any, cast

from cattrs import transform_error
from lsprotocol import types
from msgspec import Raw
from pygls.exceptions import JsonRpcException

from sidecar.lsp.language_server import Handler, TranscriptServer
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams, RpcError
from sidecar.rpc.params import Place
from sidecar.rpc.router import Outcome, Router

SYNCHRONISATION = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)
"""Methods that pygls serves itself; a feature of the same method is called after it."""

MANY = 200
"""Items of an answer from which it is written out in a thread."""

_TYPES = cast(
    "dict[str, tuple[type, type | None, type[object], object]]",
    types.METHOD_TO_TYPES,  # pyright: ignore[reportUnknownMemberType]
)
"""Request or notification, its answer, its params, and options to register it."""

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def serve_features(server: TranscriptServer, router: Router) -> None:
    """Register the document synchronisation and every feature of the server."""
    handlers, builtin = server.connection.handlers, server.connection.builtin_handlers
    methods = [*SYNCHRONISATION, *handlers]
    if server.connection.has_commands:
        methods.append(types.WORKSPACE_EXECUTE_COMMAND)
    for method in dict.fromkeys(methods):
        _serve(server, router, method, builtin.get(method) or handlers[method])


def run_steps(steps: Generator[Any, Any, object]) -> object:
    """The result of a handler of pygls, which asks for the handler of a feature by yielding it."""
    try:
        handler, arguments, named = next(steps)
        while True:
            handler, arguments, named = steps.send(handler(*arguments, **(named or {})))
    except StopIteration as end:
        return cast(object, end.value)


def _serve(server: TranscriptServer, router: Router, method: str, handler: Handler) -> None:
    _, answer, params_type, _ = _TYPES[method]
    protocol = server.connection

    def take(members: dict[str, object]) -> object:
        try:
            params = protocol.structure(members, params_type)
        except Exception as problem:
            raise _invalid(problem) from None
        try:
            outcome = handler(params)
            return (
                run_steps(cast("Generator[Any, Any, object]", outcome)) if isgenerator(outcome) else outcome
            )
        except JsonRpcException as problem:
            raise RpcError(problem.code, problem.message) from None

    async def later(outcome: Awaitable[object]) -> object:
        value = await outcome
        if isinstance(value, Raw):
            return value
        size = len(cast("list[object]", value)) if isinstance(value, list) else 1
        if size <= MANY:
            return protocol.unstructure(cast(object, value))
        # Writing out the symbols of a large file takes a second, in which others would wait.
        return await protocol.peer.loop.run_in_executor(None, protocol.unstructure, cast(object, value))

    def answered(members: dict[str, object], call: Call) -> Outcome:
        del call
        outcome = take(members)
        value = (
            later(cast("Awaitable[object]", outcome))
            if isawaitable(outcome)
            else protocol.unstructure(outcome)
        )
        return cast("Outcome", value)

    def noted(members: dict[str, object]) -> None:
        take(members)

    if answer is None:
        router.notification(method, dict[str, object], noted)
    else:
        router.request(method, dict[str, object], answered)


def _invalid(problem: Exception) -> InvalidParams:
    """What is wrong with params, named as they are named on the wire."""
    reason, _, path = transform_error(problem, path="")[0].partition(" @ ")
    place = Place(tuple(int(number) if number else _camel(name) for name, number in _STEP.findall(path)))
    return InvalidParams(f"{place.words}: {reason}", path=place.pointer)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
