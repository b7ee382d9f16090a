"""What a memory source implements, what it is asked, and what it answers.

A source knows things that the model should see: notes, facts, earlier conversations, whatever a service
remembers. It answers with fragments; what of them is shown, how, and how often, is not its business.

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
"""The priority of what is cut last."""
USUAL = 50
"""The priority of a fragment that names none."""


class MemoryRequest(NamedTuple):
    """Why a source is asked, and for whom."""

    agent_id: str
    """The agent whose memory is meant: stable over sessions, and never the name of a session."""
    injection_point: InjectionPoint
    token_budget: int
    """Most tokens that all sources together may fill."""
    session_id: str | None = None
    session_key: str | None = None
    prompt: str | None = None
    """Text of the user that the memory should fit."""
    citations_mode: str | None = None
    """The host's wish for citations, such as `on`, `off` or `auto`."""


class Fragment(Struct, frozen=True, kw_only=True):
    """A piece of text that a source wants the model to see."""

    content: str
    priority: float = USUAL
    """0 to 100; the lowest is cut first."""
    tokens: float | None = None
    """Size in tokens, where the source knows it."""
    id: str | None = None
    """Names the piece within its source: it is injected once a session, whatever its text."""
    label: str | None = None
    """Heading for the model and for people."""
    synthesize: bool = True
    """False keeps the text verbatim, and away from any model that rewrites."""


class MemorySource(Protocol):
    """A source of memory. It may be asked for several sessions at once, each time under a time limit.

    All sources share one thread: what blocks belongs into `SourceHost.run_blocking`.
    """

    name: str
    injection_points: Sequence[InjectionPoint]

    async def get_context(self, request: MemoryRequest) -> Sequence[Fragment]:
        """What the source has to say, best first; may be empty. Whatever it raises costs its answer."""
        ...


class EpisodeSearch(Protocol):
    """Searches what a back end has taken."""

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """What fits best, best first.

        Raises:
            OSError: the back end cannot be asked.
        """
        ...


class SourceHost(Protocol):
    """What the sidecar offers a source; handed to its constructor."""

    @property
    def namespace(self) -> str:
        """Of all sessions in the store, those of this namespace are the host's."""
        ...

    @property
    def store(self) -> SearchableStore:
        """The stored sessions."""
        ...

    @property
    def searching(self) -> SessionSearch:
        """Finds in the stored sessions, by meaning too where that is at hand."""
        ...

    def buffer(self, name: str) -> BufferStore:
        """A durable buffer and set of ids under a name that is the source's own."""
        ...

    def settings(self, model: type[M]) -> M:
        """The source's settings as an instance of its own model.

        Raises:
            SourceUnavailable: they do not fit the model.
        """
        ...

    @property
    def episodes(self) -> EpisodeSearch | None:
        """Finds what was handed over of turns; `None` where nothing is."""
        ...

    async def is_in_context(self, session_id: str, message_id: str) -> bool:
        """Whether the model sees the message in its session, or may; false where it was cut off."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of blocking work, done in a worker thread."""
        ...


class SourceUnavailable(Exception):
    """Raised when a source cannot be loaded or configured; the text says what to fix."""
