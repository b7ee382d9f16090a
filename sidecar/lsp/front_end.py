"""The language server behind a connection: its capabilities, and the routes to its handlers."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Generator
from inspect import isawaitable, isgenerator
from typing import Any, cast

import msgspec
from cattrs import transform_error
from lsprotocol import types
from msgspec import Raw
from pygls.exceptions import JsonRpcException

from sidecar.lsp.annotations import register_code_lenses, register_inlay_hints, register_semantic_tokens
from sidecar.lsp.attach import Stored
from sidecar.lsp.diagnostics import register_diagnostics
from sidecar.lsp.language_server import Handler, TranscriptServer
from sidecar.lsp.navigation import register_definitions, register_hover
from sidecar.lsp.symbols import register_document_symbols, register_folding_ranges, register_workspace_symbols
from sidecar.protocol.lifecycle import InitializeParams, InitializeResult, ServerCapabilities
from sidecar.rpc.errors import InvalidParams, RpcError
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Call, JsonPath, Outcome, Router

FEATURES = (
    register_document_symbols,
    register_folding_ranges,
    register_hover,
    register_inlay_hints,
    register_code_lenses,
    register_definitions,
    register_semantic_tokens,
    register_diagnostics,
    register_workspace_symbols,
)
"""Functions that each register one feature with a server."""

SYNCHRONISATION = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)
"""Methods that pygls serves itself; a feature for the same method runs afterwards."""

MANY = 200
"""Maximum items of an answer that is encoded on the event loop; larger ones are encoded in a thread."""

_TYPES = cast(
    "dict[str, tuple[type, type | None, type[object], object]]",
    types.METHOD_TO_TYPES,  # pyright: ignore[reportUnknownMemberType]
)
"""By method: the types of request or notification, answer and params, and the registration options."""

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
    """The result of a pygls handler, a generator that yields each feature handler to be called."""
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
        # Encoding the symbols of a large file takes a second, during which other requests would wait.
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
    """The error for invalid params, with member names as on the wire."""
    reason, _, path = transform_error(problem, path="")[0].partition(" @ ")
    place = JsonPath(tuple(int(number) if number else _camel(name) for name, number in _STEP.findall(path)))
    return InvalidParams(f"{place.words}: {reason}", path=place.pointer)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


# pygls logs the params of initialize at info level; data sent by hosts must stay out of logs.
logging.getLogger("pygls").setLevel(logging.WARNING)

_log = logging.getLogger(__name__)


def open_front_end(
    router: Router, peer: Peer, params: InitializeParams, answer: InitializeResult, stored: Stored
) -> InitializeResult:
    """The answer with the editor capabilities added; the router serves their methods from now on."""
    server = TranscriptServer(peer, stored)
    for register in FEATURES:
        register(server)
    capabilities = _initialize(server, params)
    serve_features(server, router)
    members = cast("dict[str, object]", server.connection.unstructure(capabilities))
    return _with_capabilities(members, answer)


def _initialize(server: TranscriptServer, params: InitializeParams) -> types.ServerCapabilities:
    initialize = types.InitializeParams(
        capabilities=_client_capabilities(server, params.capabilities),
        process_id=params.process_id,
        root_uri=params.root_uri,
        root_path=params.root_path,
        workspace_folders=_workspace_folders(server, params.workspace_folders),
    )
    result = cast("types.InitializeResult", run_steps(server.connection.lsp_initialize(initialize)))
    if not server.connection.has_commands:
        result.capabilities.execute_command_provider = None
    return result.capabilities


def _client_capabilities(server: TranscriptServer, raw: Raw) -> types.ClientCapabilities:
    """The client's capabilities; unknown ones, from newer clients, are ignored."""
    members = cast("dict[str, object]", _decoded(raw) or {})
    known: dict[str, object] = {}
    for name, value in members.items():
        try:
            server.connection.structure({name: value}, types.ClientCapabilities)
        except Exception:
            _log.warning("ignored the client's capabilities for %s: their form is unknown", name)
        else:
            known[name] = value
    return server.connection.structure(known, types.ClientCapabilities)


def _workspace_folders(server: TranscriptServer, raw: Raw) -> list[types.WorkspaceFolder]:
    folders = _decoded(raw)
    if not isinstance(folders, list):
        return []
    found: list[types.WorkspaceFolder] = []
    for folder in cast("list[object]", folders):
        try:
            found.append(server.connection.structure(folder, types.WorkspaceFolder))
        except Exception:
            _log.warning("ignored a workspace folder: its form is unknown")
    return found


def _decoded(raw: Raw) -> object:
    given = bytes(raw)
    return msgspec.json.decode(given) if given else None


def _with_capabilities(members: dict[str, object], answer: InitializeResult) -> InitializeResult:
    """The answer with these members added to `capabilities`."""
    shape = msgspec.defstruct(
        "EditorServerCapabilities",
        [(name, object) for name in members],
        bases=(ServerCapabilities,),
        frozen=True,
        kw_only=True,
    )
    both = shape(**members, experimental=answer.capabilities.experimental)
    return InitializeResult(capabilities=cast("ServerCapabilities", both), server_info=answer.server_info)
