"""The interface of memory sources: requests, fragments, and the services of the host.

A source knows things that the model should see: notes, facts, earlier conversations, whatever a service
remembers. It returns fragments; the sidecar decides which of them are shown, how, and how often.

    class Weather:
        name = "weather"
        injection_points = ("per-message",)

        def __init__(self, host: SourceHost) -> None: ...

        async def get_context(self, request: MemoryRequest) -> list[Fragment]:
            return [Fragment(content="It rains in Bergen.", priority=20)]

A package registers its source in the entry-point group `context_sidecar.memory`; `plugins.slots.memory` names
the sources that are asked, `plugins.entries.<id>.config` has their settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.episodes.contract import Remembered
    from sidecar.store.buffer import BufferStore
    from sidecar.store.search import SearchableStore, SessionSearch

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")

InjectionPoint = Literal["session-start", "per-message"]

HIGHEST = 100
"""The highest priority, which is cut last."""
USUAL = 50
"""The default priority of a fragment."""


class MemoryRequest(NamedTuple):
    """A request for context: its purpose, and the agent and session it is for."""

    agent_id: str
    """The agent whose memory to use; stable across sessions, never a session's name."""
    injection_point: InjectionPoint
    token_budget: int
    """Token budget of all sources together."""
    session_id: str | None = None
    session_key: str | None = None
    prompt: str | None = None
    """The user's text that the memory should match."""
    citations_mode: str | None = None
    """The host's wish for citations, such as `on`, `off` or `auto`."""


class Fragment(Struct, frozen=True, kw_only=True):
    """A piece of text that a source wants the model to see."""

    content: str
    priority: float = USUAL
    """0 to 100; the lowest is cut first."""
    tokens: float | None = None
    """Size in tokens, if the source knows it."""
    id: str | None = None
    """Identifies the fragment within its source, so that a session gets it once, whatever its text."""
    label: str | None = None
    """Heading for the model and for people."""
    synthesize: bool = True
    """False keeps the text verbatim; no model sees or rewrites it."""


class MemorySource(Protocol):
    """A source of memory, called for several sessions concurrently, each call with a time limit.

    All sources share one thread: use `SourceHost.run_blocking` for blocking work.
    """

    name: str
    injection_points: Sequence[InjectionPoint]

    async def get_context(self, request: MemoryRequest) -> Sequence[Fragment]:
        """The source's fragments, best first; may be empty. If it raises, its answer is dropped."""
        ...


class EpisodeSearch(Protocol):
    """Searches the episodes that a back end has received."""

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """The best matches, best first.

        Raises:
            OSError: the back end cannot be reached.
        """
        ...


class SourceHost(Protocol):
    """Services of the sidecar for a source; passed to its constructor."""

    @property
    def namespace(self) -> str:
        """The namespace of the host's sessions."""
        ...

    @property
    def store(self) -> SearchableStore:
        """The stored sessions."""
        ...

    @property
    def searching(self) -> SessionSearch:
        """Searches the stored sessions, by meaning too if that is available."""
        ...

    def buffer(self, name: str) -> BufferStore:
        """A durable buffer and set of ids under a name of the source's own."""
        ...

    def settings(self, model: type[M]) -> M:
        """The source's settings as an instance of its model.

        Raises:
            SourceUnavailable: the settings do not match the model.
        """
        ...

    @property
    def episodes(self) -> EpisodeSearch | None:
        """Searches the episodes handed to a back end; `None` if episodes are disabled."""
        ...

    async def is_in_context(self, session_id: str, message_id: str) -> bool:
        """Whether the message is, or may be, in its session's context; false if it was cut off."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work in a worker thread and return its result."""
        ...


class SourceUnavailable(Exception):
    """Raised if a source cannot be loaded or configured; the text says what to fix."""
