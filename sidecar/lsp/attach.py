"""Adds what editors get to a connection whose client declares `textDocument` capabilities."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from sidecar.protocol.initialize import InitializeParams, InitializeResult
from sidecar.protocol.lifecycle import LogMessageWindowParams
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router

if TYPE_CHECKING:
    from sidecar.store.search import SearchableStore

EXTRA = frozenset(("pygls", "lsprotocol", "cattrs", "attrs", "attr"))
"""Top-level modules that the extra `lsp` brings."""

INSTALL = (
    "Editor features are off: the packages pygls and lsprotocol are not installed. "
    "Install them with: pip install 'context-sidecar[lsp]'"
)

_WARNING = 2

_log = logging.getLogger(__name__)


class Stored(NamedTuple):
    """What editors are shown of the sidecar behind the connection."""

    store: SearchableStore
    namespace: str
    token_budget: int
    """Size of the window that transcripts are measured by, in tokens."""
    standing: Callable[[str, int], Awaitable[tuple[str, str] | None]]
    """What became of a message in the newest answer, and why: from its session and its position, from 1."""


def attach_editor(
    router: Router, peer: Peer, params: InitializeParams, answer: InitializeResult, stored: Stored
) -> InitializeResult:
    """The answer with the capabilities for editors, whose methods are served from now on.

    Without the extra `lsp` it is the answer as it was, and the client's log says what to install.
    """
    try:
        # This costs half a second of CPU, which only editors are to pay.
        from sidecar.lsp.front_end import open_front_end
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in EXTRA:
            raise
        _log.warning("%s", INSTALL)
        peer.notify("window/logMessage", LogMessageWindowParams(type=_WARNING, message=INSTALL))
        return answer
    return open_front_end(router, peer, params, answer, stored)
