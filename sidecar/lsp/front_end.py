"""Opens the language server behind a connection, and tells the client what it can do."""

from __future__ import annotations

import logging
from typing import cast

import msgspec
from lsprotocol import types
from msgspec import Raw

from sidecar.lsp.attach import Stored
from sidecar.lsp.features import register_features
from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.routes import run_steps, serve_features
from sidecar.protocol.initialize import InitializeParams, InitializeResult, ServerCapabilities
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router

# pygls logs the params of initialize at info level; what hosts send stays out of logs.
logging.getLogger("pygls").setLevel(logging.WARNING)

_log = logging.getLogger(__name__)


def open_front_end(
    router: Router, peer: Peer, params: InitializeParams, answer: InitializeResult, stored: Stored
) -> InitializeResult:
    """The answer with the editor's capabilities beside ours; the router serves their methods from now on."""
    server = TranscriptServer(peer, stored)
    register_features(server)
    capabilities = _initialize(server, params)
    serve_features(server, router)
    members = cast("dict[str, object]", server.connection.unstructure(capabilities))
    return _beside(members, answer)


def _initialize(server: TranscriptServer, params: InitializeParams) -> types.ServerCapabilities:
    told = types.InitializeParams(
        capabilities=_client_capabilities(server, params.capabilities),
        process_id=params.process_id,
        root_uri=params.root_uri,
        root_path=params.root_path,
        workspace_folders=_workspace_folders(server, params.workspace_folders),
    )
    result = cast("types.InitializeResult", run_steps(server.connection.lsp_initialize(told)))
    if not server.connection.has_commands:
        result.capabilities.execute_command_provider = None
    return result.capabilities


def _client_capabilities(server: TranscriptServer, raw: Raw) -> types.ClientCapabilities:
    """What the client declares; a client that is ahead of us must not fail for what we do not know."""
    members = cast("dict[str, object]", _decoded(raw) or {})
    known: dict[str, object] = {}
    for name, value in members.items():
        try:
            server.connection.structure({name: value}, types.ClientCapabilities)
        except Exception:
            _log.warning("the client's capabilities for %s are of no known form; they are passed over", name)
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
            _log.warning("a workspace folder is of no known form; it is passed over")
    return found


def _decoded(raw: Raw) -> object:
    given = bytes(raw)
    return msgspec.json.decode(given) if given else None


def _beside(members: dict[str, object], answer: InitializeResult) -> InitializeResult:
    """The answer with more members in `capabilities`."""
    shape = msgspec.defstruct(
        "EditorServerCapabilities",
        [(name, object) for name in members],
        bases=(ServerCapabilities,),
        frozen=True,
        kw_only=True,
    )
    both = shape(**members, experimental=answer.capabilities.experimental)
    return InitializeResult(capabilities=cast("ServerCapabilities", both), server_info=answer.server_info)
