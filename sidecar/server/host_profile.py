"""What the handshake says about a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.protocol.base import MessageFormat


class HostProfile(Struct, frozen=True, kw_only=True):
    """The host at the other end of a connection."""

    namespace: str
    message_format: MessageFormat
    capabilities: frozenset[str]
    """The requests that it answers."""
    supports_progress: bool = False
