"""Adds what editors get to a connection whose client declares `textDocument` capabilities."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sidecar.origin import install_command
from sidecar.protocol.lifecycle import InitializeParams, InitializeResult, LogMessageWindowParams
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router

if TYPE_CHECKING:
    from sidecar.store.search import SearchableStore

EXTRA = frozenset(("pygls", "lsprotocol", "cattrs", "attrs", "attr"))
"""Top-level modules that the extra `lsp` brings."""

INSTALL = (
    "Editor features are off: the packages pygls and lsprotocol are not installed. "
    f"Install them with: {install_command('lsp')}"
)

_WARNING = 2

_log = logging.getLogger(__name__)


class Standings(Protocol):
    """Tells what became of the messages of a session in the newest answer, and why."""

    def __call__(
        self, session_id: str, first: int = 1, last: int | None = None
    ) -> Awaitable[Mapping[int, tuple[str, str]]]:
        """The decision and its reason for each position from `first` to `last`, as far as they are known."""
        ...


class Stored(NamedTuple):
    """What editors are shown of the sidecar behind the connection."""

    store: SearchableStore
    namespace: str
    token_budget: int
    """Size of the window that transcripts are measured by, in tokens."""
    standings: Standings


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
