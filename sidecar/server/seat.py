"""An engine that serves, with what the sidecar keeps about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sidecar.engine.contract import ContextEngine
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.engine_kinds import describe
from sidecar.server.health import EngineHealth
from sidecar.server.lending import LentSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidecar.server.engine_session import EngineSession
    from sidecar.tools.contract import AgentTool


class Seat(Struct, kw_only=True):
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

    def lend(self, session: EngineSession) -> Session:
        """The session as this engine is to be given it."""
        return session if self.trusted else LentSession(session, copies=not self.isolated)

    def describe(self) -> EngineInfo:
        """What the host is told about the engine."""
        return describe(self.engine.info, self.own, self.fallback_for)
