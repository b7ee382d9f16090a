"""An engine that serves: what its class declares, what is configured, and how it is doing."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field, json

from sidecar.engine.contract import OPTIONAL_MEMBERS, ContextEngine, StoringEngine
from sidecar.engine.contract import EngineInfo as Declared
from sidecar.engine.loading import import_target
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.engines.session import OutsideSession

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.server.engines.session import EngineSession
    from sidecar.tools.contract import AgentTool


_log = logging.getLogger(__name__)

LEGACY = "legacy"
"""The engine that hands back the host's own list."""
WIRE_NAMES = {
    "after_turn": "afterTurn",
    "prepare_spawn": "prepareSpawn",
    "spawn_ended": "subagentEnded",
}

FAILURES_IN_A_ROW = 5
FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 600.0
KEPT_SESSIONS = 4096
"""Sessions with failures that are remembered."""


class SettingsRefused(Exception):
    """Raised when a setting of an engine is wrong; the text names the key."""


def optional_members(kind: type[ContextEngine]) -> tuple[str, ...]:
    """The optional members that the engine has itself, in Python's spelling."""
    return tuple(m for m in OPTIONAL_MEMBERS if getattr(kind, m) is not getattr(ContextEngine, m))


def stores_plainly(kind: type[ContextEngine]) -> bool:
    """True where ingesting is left to the store, so that no coroutine is needed."""
    return kind.ingest is StoringEngine.ingest


def describe(info: Declared, own: Iterable[str], fallback_for: FallbackFor | None = None) -> EngineInfo:
    """An engine in the words of the protocol; `own` are its optional members."""
    return EngineInfo(
        id=info.id,
        name=info.name,
        version=info.version,
        owns_compaction=info.owns_compaction,
        turn_maintenance_mode=info.turn_maintenance_mode,
        implements=[WIRE_NAMES.get(m, m) for m in ("ingest", "assemble", "compact", *own)],
        host_requirements=list(info.host_requirements) or None,
        fallback_for=fallback_for,
    )


def declared(info: EngineInfo) -> Declared:
    """The same as an engine declares it."""
    return Declared(
        id=info.id,
        name=info.name,
        version=info.version,
        owns_compaction=info.owns_compaction,
        turn_maintenance_mode="background" if info.turn_maintenance_mode == "background" else "foreground",
        host_requirements=tuple(info.host_requirements or ()),
    )


def validated_settings(kind: type[ContextEngine], values: Mapping[str, Any]) -> BaseModel | None:
    """The engine's settings, `None` where nothing is configured and its defaults hold.

    Raises:
        SettingsRefused: a value is wrong.
    """
    if not values or kind.settings_model is None:
        return None
    model = kind.settings_model
    if isinstance(model, str):
        model = import_target(model)
    from pydantic import ValidationError

    for name in values:
        if name not in model.model_fields:
            _log.warning("unknown setting plugins.entries.%s.config.%s", kind.info.id, name)
    try:
        # As JSON, where a list is right for a tuple; strict, so that "3", 3.0 and true are no 3.
        return model.model_validate_json(json.encode(values), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, ("plugins.entries", kind.info.id, "config", *first["loc"])))
        raise SettingsRefused(f"{where}: {first['msg']}") from None


class InQuarantine(Exception):
    """Raised when an engine is not to be asked for a while."""


class Quarantine(NamedTuple):
    """A session from which the engine is kept away."""

    session_id: str
    failures: int
    seconds_left: float
    last: str
    """What went wrong last."""


class _Failures(Struct):
    count: int = 0
    last: str = ""
    until: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    trying: bool = False


class EngineHealth:
    """Counts failures by session; after `FAILURES_IN_A_ROW` the engine is not asked for a while."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Failures] = OrderedDict()
        self.failures = 0
        """Calls that have failed so far."""

    def admit(self, session_id: str) -> None:
        """Let a call begin.

        Raises:
            InQuarantine: the engine is in quarantine for this session; the text tells for how long, and why.
        """
        known = self._sessions.get(session_id)
        if known is None or known.count < FAILURES_IN_A_ROW:
            return
        left = known.until - time.monotonic()
        if left > 0:
            raise InQuarantine(
                f"in quarantine for this session after {known.count} failures, for {left:.0f} s more; "
                f"the last one: {known.last}"
            )
        if known.trying:
            raise InQuarantine(f"in quarantine for this session, being tried again; before: {known.last}")
        known.trying = True

    def failed(self, session_id: str, what: str) -> float:
        """Take in that a call has failed; the seconds for which the engine is not asked now, 0 for none."""
        self.failures += 1
        known = self._sessions.setdefault(session_id, _Failures())
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        known.count += 1
        known.last = what[:300]
        if known.count >= FAILURES_IN_A_ROW:
            if known.trying:
                known.pause_s = min(known.pause_s * 2, LONGEST_PAUSE_S)
            known.until = time.monotonic() + known.pause_s
        known.trying = False
        return known.pause_s if known.count >= FAILURES_IN_A_ROW else 0.0

    def went_well(self, session_id: str) -> bool:
        """Take in that a call has come to its end; true where that ends a quarantine."""
        known = self._sessions.pop(session_id, None) if self._sessions else None
        return known is not None and known.count >= FAILURES_IN_A_ROW

    def quarantined(self) -> list[Quarantine]:
        """The sessions from which the engine is kept away now."""
        now = time.monotonic()
        return [
            Quarantine(session_id, known.count, known.until - now, known.last)
            for session_id, known in self._sessions.items()
            if known.count >= FAILURES_IN_A_ROW and known.until > now
        ]


class EngineInstance(Struct, kw_only=True):
    """An engine that serves, and how many calls it is serving."""

    engine: ContextEngine
    own: tuple[str, ...] = ()
    """Optional members that the engine has itself, in Python's spelling."""
    stores: bool = False
    """True where messages go straight to the store, without being shown to the engine."""
    trusted: bool = True
    """True for built-in engines, which get our own objects and are called without a task of their own."""
    isolated: bool = False
    """True where the engine runs in a process of its own."""
    own_tools: Mapping[str, AgentTool] = {}
    """Tools that run in the engine's process, by name."""
    buffers_episodes: bool = False
    """True where its turns are buffered for a back end."""
    shortens_results: bool = False
    """True where old tool results are left to the engine."""
    takes_note: bool = False
    """True where the engine looks at new messages behind their acknowledgement."""
    health: EngineHealth = field(default_factory=EngineHealth)
    config: bytes = b""
    """What was configured above the general settings, as a JSON object."""
    fallback_for: FallbackFor | None = None
    calls: int = 0
    retired: bool = False

    @property
    def id(self) -> str:
        """The engine's id."""
        return self.engine.info.id

    @property
    def signature(self) -> str:
        """Changes whenever another engine, or other settings, may answer in another way."""
        return f"{self.id} {self.config and digest(self.config.decode('utf-8', 'replace'))}"

    def has(self, member: str) -> bool:
        """Whether the engine has this optional member itself."""
        return member in self.own

    def session_for(self, session: EngineSession) -> Session:
        """The session as this engine is to be given it."""
        return session if self.trusted else OutsideSession(session, copies=not self.isolated)

    def describe(self) -> EngineInfo:
        """What the host is told about the engine."""
        return describe(self.engine.info, self.own, self.fallback_for)
