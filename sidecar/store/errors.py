"""What stores raise."""

from __future__ import annotations

import errno


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


def files_used_up(error: BaseException | None) -> StoreUnavailable | None:
    """The error for a process or system that may open no more files, `None` for any other cause."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return StoreUnavailable(
                "too many files are open",
                "Raise the limit of open files (`ulimit -n`) to 64 or more, or close other programs.",
                retryable=True,
            )
        error = error.__cause__ or error.__context__
    return None


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
