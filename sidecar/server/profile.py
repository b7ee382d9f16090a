"""The host at the other end of a connection: what it said of itself, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sidecar.store.stored import SessionRef

if TYPE_CHECKING:
    from sidecar.protocol.base import MessageFormat
    from sidecar.rpc.peer import Peer

T = TypeVar("T")


class Host:
    """One host; its sessions are those of its namespace."""

    def __init__(
        self,
        peer: Peer,
        *,
        namespace: str,
        message_format: MessageFormat,
        capabilities: frozenset[str],
        supports_progress: bool = False,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` bounds each of its answers."""
        self.peer = peer
        self.namespace = namespace
        self.message_format: MessageFormat = message_format
        self.capabilities = capabilities
        """The requests that it answers."""
        self.supports_progress = supports_progress
        self._timeout_ms = timeout_ms

    def ref(self, session_id: str) -> SessionRef:
        """The key of one of its sessions."""
        return SessionRef(self.namespace, session_id)

    async def ask(self, method: str, params: object, result_type: type[T]) -> T:
        """Its answer to a request.

        Raises:
            RpcError: it answered with an error, or not in time.
        """
        return await self.peer.request(method, params, result_type, timeout_ms=self._timeout_ms)
