"""What hosts get wrong without an error: members in the wrong place, messages of another dialect.

Unknown members are ignored and messages are opaque, so neither is refused; both are warned about.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from sidecar.protocol.base import ABSENT, JsonValue
from sidecar.protocol.lifecycle import ContextEngineOptions, InitializationOptions, InitializeParams

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer

CONFIGURATION = (
    *("state_dir", "store", "plugins", "memory", "limits", "pruning", "tokens", "search", "recall", "model"),
    *("engines", "episodes", "retention", "hosts", "sessions", "log", "telemetry"),
)
"""The tables of the configuration; its own model is not loaded for their names."""
SHORT = 64 << 10
"""Longer messages are not looked at, in bytes."""
LOOKS = 32
"""Messages with signs of the connection's own dialect after which no more are looked at."""
NEWEST = 8
"""Messages at the end of a list that are looked at."""
_SIGNS = (
    *(b'"tool_use', b'"tool_result"', b'"tool_calls"', b'"tool_call_id"', b'"toolCall', b'"toolResult"'),
    *(b'"tool-call"', b'"tool-result"', b'"toolInvocations"', b'"function_call', b'"input_text"'),
    *(b'"output_text"', b'"thinking"', b'"parts"'),
)
_WARNING = 2
"""`MessageType.Warning` of the Language Server Protocol."""

_OPTIONS = ContextEngineOptions.__struct_fields__

_log = logging.getLogger(__name__)


def _watched(base: type[msgspec.Struct], names: Iterable[str], **changed: object) -> Any:
    """The type, with members of these names where it has none, and with others of another type."""
    added = [(name, JsonValue, ABSENT) for name in names if name not in base.__struct_fields__]
    retyped = [(name, kind, None) for name, kind in changed.items()]
    return msgspec.defstruct(base.__name__, [*added, *retyped], bases=(base,), frozen=True, kw_only=True)


_WatchedEngine = _watched(ContextEngineOptions, CONFIGURATION)
_WatchedOptions = _watched(InitializationOptions, _OPTIONS, context_engine=_WatchedEngine | None)
WATCHED_PARAMS: type[InitializeParams] = _watched(
    InitializeParams, ("context_engine", *_OPTIONS), initialization_options=_WatchedOptions | None
)
"""The params of `initialize`, with members that hosts put in the wrong place."""


def misplaced(params: InitializeParams) -> Iterator[str]:
    """A warning for every known member of the handshake that stands where nobody reads it."""
    options = params.initialization_options
    engine = None if options is None else options.context_engine
    right = "initializationOptions.contextEngine"
    yield from _moved(params, ("context_engine",), "params", "initializationOptions")
    yield from _moved(params, _OPTIONS, "params", right)
    yield from _moved(options, _OPTIONS, "initializationOptions", right)
    yield from _moved(engine, CONFIGURATION, right, f"{right}.config")


def _moved(found: msgspec.Struct | None, names: Iterable[str], where: str, right: str) -> Iterator[str]:
    for name in names:
        value: object = getattr(found, name, None)
        if isinstance(value, Raw) and bytes(value) not in (b"", b"null"):
            spelled = camel(name)
            yield f"{where}.{spelled} is not read: it belongs into {right}.{spelled}"


def camel(name: str) -> str:
    """The name as the wire spells it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


class DialectWatch:
    """Looks whether the messages of a connection are of its dialect, and warns once where they are not."""

    def __init__(self, message_format: str, peer: Peer) -> None:
        self.warning: str | None = None
        self._format = message_format
        self._peer = peer
        self._left = LOOKS

    def look(self, raw: bytes) -> None:
        """Look at a message; most are plain text, which is of every dialect, and cost next to nothing."""
        if not self._left or len(raw) > SHORT or not any(sign in raw for sign in _SIGNS):
            return
        from sidecar.messages.shapes import contradiction

        other = contradiction(raw, self._format)
        self._left -= 1
        if other is not None:
            self._left = 0
            self.warning = (
                f"a message has the shape of {other}, but the connection's messageFormat is {self._format}: "
                "its calls and results are not understood"
            )
            warn(self._peer, self.warning)

    def look_through(self, messages: Sequence[bytes | Raw]) -> None:
        """Look at the newest messages of a list."""
        if self._left:
            for message in messages[-NEWEST:]:
                self.look(bytes(message))


def warn(peer: Peer, warning: str) -> None:
    """Write a warning to the log, and to the client's."""
    from sidecar.protocol.lifecycle import LogMessageWindowParams

    _log.warning("%s", warning)
    peer.notify("window/logMessage", LogMessageWindowParams(type=_WARNING, message=warning))
