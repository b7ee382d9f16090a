"""Tells which sessions are exempt from being kept, by the patterns of the configuration."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum

from sidecar.server.configuration.settings import ExemptionSettings

REMEMBERED = 20_000
"""Sessions whose exemption is remembered."""


class Exemption(Enum):
    """Why nothing is kept of a session; the value is the setting that says so."""

    IGNORED = "sessions.ignoreSessionPatterns"
    """Engines never see it: the host's list is passed through."""
    STATELESS = "sessions.statelessSessionPatterns"
    """The engine serves it from what the host sends, and from what was stored before; nothing is added."""

    @property
    def ignores(self) -> bool:
        """Whether engines never see the session."""
        return self is Exemption.IGNORED

    @property
    def reason(self) -> str:
        """What the host is told."""
        return f"nothing is kept of this session, by {self.value}"


class ExemptSessions:
    """Knows a session by its key or its id, and by its id alone once it was named together with its key."""

    def __init__(self, settings: ExemptionSettings) -> None:
        self._ignored = _matcher(settings.ignored)
        self._stateless = _matcher(settings.stateless)
        self._known: OrderedDict[str, Exemption | None] = OrderedDict()

    @property
    def seen(self) -> int:
        """Sessions that were asked for lately and are not kept."""
        return sum(exemption is not None for exemption in self._known.values())

    @property
    def everything(self) -> Exemption | None:
        """What becomes of a session whatever it is called, `None` where that depends on its name."""
        return self._of(("\0", "\0:\0"), every=True)

    def of(self, session_id: str, session_key: str | None = None) -> Exemption | None:
        """Why nothing is kept of a session; `None` where it is kept."""
        known = self._known
        if session_key is None and session_id in known:
            return known[session_id]
        names = (session_id,) if session_key is None else (session_key, session_id)
        known[session_id] = exemption = self._of(names)
        known.move_to_end(session_id)
        if len(known) > REMEMBERED:
            known.popitem(last=False)
        return exemption

    def of_child(self, session_key: str, session_id: str | None) -> Exemption | None:
        """Why nothing is kept of a session that is going to have that key, and perhaps that id."""
        return self._of((session_key, session_id)) if session_id else self._of((session_key,))

    def _of(self, names: Sequence[str], *, every: bool = False) -> Exemption | None:
        told = all if every else any
        if told(self._ignored(name) for name in names):
            return Exemption.IGNORED
        return Exemption.STATELESS if told(self._stateless(name) for name in names) else None


def _matcher(patterns: Sequence[str]) -> Callable[[str], object]:
    """Tells whether a name matches any of the patterns: `*` is anything without a colon, `**` anything."""
    return re.compile("|".join(map(_expression, patterns)) or "(?!)", re.DOTALL).fullmatch


def _expression(pattern: str) -> str:
    """The pattern as a regular expression."""
    pieces = re.split(r"(\*+)", pattern)
    return "".join({"": "", "*": "[^:]*"}.get(p, ".*" if p[:1] == "*" else re.escape(p)) for p in pieces)
