"""Drives a session store from plain test functions."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from sidecar.store.contract import SessionStore
from sidecar.store.stored import NewMessage, SessionRef, StoredMessage
from sidecar.store.writes import Append, AppendResult, Write

_T = TypeVar("_T")

LIMIT_S = 30
REF = SessionRef("host", "main")


class Driver:
    """A store with a loop of its own; every call waits for its end, within a limit."""

    def __init__(self, make: Callable[[], SessionStore]) -> None:
        self._make = make
        self._runner = asyncio.Runner()
        self.store = make()

    def __enter__(self) -> "Driver":
        try:
            self.run(self.store.open())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.run(self.store.close())
        self._runner.close()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """The result of a coroutine, which may use the store."""
        return self._runner.run(asyncio.wait_for(coroutine, LIMIT_S))

    def reopen(self) -> None:
        """Close the store, and open a new one of the same making."""
        self.run(self.store.close())
        self.store = self._make()
        self.run(self.store.open())

    def write(self, write: Write) -> Any:
        """The result of a write."""
        return self.run(self.store.write(write))

    def append(self, ref: SessionRef, *messages: NewMessage | str, **options: Any) -> AppendResult:
        """The result of an `Append`; a text stands for a user message."""
        made = [user(message) if isinstance(message, str) else message for message in messages]
        options.setdefault("message_format", "openai")
        return self.write(Append(ref, made, **options))

    def messages(self, ref: SessionRef, first: int = 1, last: int = 1 << 30) -> list[StoredMessage]:
        """The stored messages, by default all."""
        return self.run(self.store.messages(ref, first, last))

    def texts(self, ref: SessionRef) -> list[str]:
        """The bodies of all messages."""
        return texts(self.messages(ref))

    def ids(self, ref: SessionRef) -> list[str]:
        """The ids of all messages."""
        return [message.message_id for message in self.messages(ref)]

    def turns(self, ref: SessionRef) -> list[str]:
        """The turn ids of all messages."""
        return [message.turn_id for message in self.messages(ref)]


def texts(messages: Sequence[StoredMessage]) -> list[str]:
    """The bodies."""
    return [message.body.decode() for message in messages]


def user(text: str, **members: Any) -> NewMessage:
    """A user message, which opens a turn."""
    return NewMessage(body=text.encode(), role="user", opens_turn=True, **members)


def reply(text: str, role: str = "assistant", **members: Any) -> NewMessage:
    """A message that opens no turn."""
    return NewMessage(body=text.encode(), role=role, opens_turn=False, **members)
