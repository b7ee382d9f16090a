"""What stores raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class StoreError(Exception):
    """Base of everything a store raises on purpose.

    - `StoreUnavailable`: the store cannot be opened, reached or written (full disk, newer schema);
      `StoreDamaged` where the file is not sound.
    - `SessionMissing`: the session does not exist in this namespace, or belongs to another agent.
      `SessionTaken` where a session of that name would have been made.
    - `SessionExists`: a session of that name is already there.
    - `FormatMismatch`: the session holds messages of another dialect.
    - `MessageMissing`: the named message is not in the session.
    - `WriteWithdrawn`: the write was cancelled before it began; it has no effect.
    """


class StoreUnavailable(StoreError):
    """Raised when the store cannot serve; `hint` tells the operator what to do."""

    def __init__(self, reason: str, hint: str = "", *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.hint = hint
        self.retryable = retryable


class StoreDamaged(StoreUnavailable):
    """Raised when what is kept is no longer sound, or never was a store."""


class SessionMissing(StoreError):
    """Raised when a session is unknown to this namespace, or is another agent's."""


class SessionTaken(SessionMissing):
    """Raised when a session would be made under a name that another agent's session has."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the session id {session_id!r} is taken")
        self.session_id = session_id


class SessionExists(StoreError):
    """Raised when a session would be created over an existing one."""


class FormatMismatch(StoreError):
    """Raised when a session belongs to another `messageFormat`."""

    def __init__(self, message_format: str) -> None:
        super().__init__(f"the session holds {message_format} messages")
        self.message_format = message_format


class MessageMissing(StoreError):
    """Raised when a message id is not in the session."""


class WriteWithdrawn(StoreError):
    """Raised when a write was cancelled before it began."""
