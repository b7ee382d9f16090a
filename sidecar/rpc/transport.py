"""What a peer needs of whatever carries its bytes."""

from collections.abc import Sequence
from typing import Protocol


class Receiver(Protocol):
    """Takes what a transport has read; called on the loop's thread only."""

    def received(self, chunk: bytes) -> None:
        """Some bytes have come."""
        ...

    def ended(self) -> None:
        """No more bytes will come."""
        ...

    def drained(self) -> None:
        """Some of what waited to be sent has been sent."""
        ...

    def broken(self) -> None:
        """Nothing more can be sent; the other side does not read any longer."""
        ...


class Transport(Protocol):
    """Carries bytes both ways without ever blocking the loop."""

    @property
    def unsent(self) -> int:
        """Bytes that were written but wait to be sent."""
        ...

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        ...

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers in order, now or when the other side reads."""
        ...

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        ...

    def resume_reading(self) -> None:
        """Go on reading."""
        ...

    def read_available(self) -> None:
        """Read what is there right now, without waiting for more."""
        ...

    async def flush(self, limit_s: float) -> bool:
        """Wait until all is sent: false where nothing moved for `limit_s` seconds."""
        ...

    def close(self) -> None:
        """Stop reading, drop what is unsent, leave the descriptors as they were found."""
        ...
