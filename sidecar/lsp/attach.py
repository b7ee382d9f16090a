"""Adds editor features to a connection whose client declares `textDocument` capabilities."""

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
"""Top-level modules installed by the extra `lsp`."""

INSTALL = (
    "Editor features are off: the packages pygls and lsprotocol are not installed. "
    f"Install them with: {install_command('lsp')}"
)

_WARNING = 2

_log = logging.getLogger(__name__)


class Standings(Protocol):
    """Returns the decisions on a session's messages in the newest answer."""

    def __call__(
        self, session_id: str, first: int = 1, last: int | None = None
    ) -> Awaitable[Mapping[int, tuple[str, str]]]:
        """The decision and its reason for each known position from `first` to `last`."""
        ...


class Stored(NamedTuple):
    """The sidecar's data that editors can see."""

    store: SearchableStore
    namespace: str
    token_budget: int
    """Context window in tokens, against which transcripts are measured."""
    standings: Standings


def attach_editor(
    router: Router, peer: Peer, params: InitializeParams, answer: InitializeResult, stored: Stored
) -> InitializeResult:
    """Serve the editor methods from now on, and return the answer with their capabilities added.

    Without the extra `lsp`, the answer is unchanged, and the client's log says what to install.
    """
    try:
        # This costs half a second of CPU, which only editors should pay.
        from sidecar.lsp.front_end import open_front_end
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in EXTRA:
            raise
        _log.warning("%s", INSTALL)
        peer.notify("window/logMessage", LogMessageWindowParams(type=_WARNING, message=INSTALL))
        return answer
    return open_front_end(router, peer, params, answer, stored)
