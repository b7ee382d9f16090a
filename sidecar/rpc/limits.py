"""Bounds of one connection."""

from msgspec import Struct

from sidecar.rpc.framing import DEFAULT_LIMIT


class PeerLimits(Struct):
    """Bounds of one connection; may be changed while it runs."""

    max_message_bytes: int = DEFAULT_LIMIT
    """Bytes of the largest body, and of all bodies whose requests run at once."""
    max_in_flight: int = 256
    """Requests that run at once; further ones are parked."""
    max_parked_bytes: int = 64 * 1024 * 1024
    """Bytes of parked messages beyond which a request is refused."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Bytes of unsent answers beyond which no request is started."""
    request_timeout_ms: float = 120_000
    """How long a request of ours waits for its answer; 0 for ever."""
