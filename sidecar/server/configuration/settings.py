"""The settings in force, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from sidecar.engine.guard.pruning_rules import PruningRules

DEFAULT_TOKEN_BUDGET = 128_000
MEBIBYTE = 1 << 20


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds that the sidecar keeps."""

    max_message_bytes: int = 256 * MEBIBYTE
    max_in_flight: int = 256
    max_parked_bytes: int = 64 * MEBIBYTE
    cache_bytes: int = 128 * MEBIBYTE
    host_request_timeout_ms: int = 120_000
    engine_timeout_ms: int = 120_000
    default_token_budget: int = DEFAULT_TOKEN_BUDGET


class StoreSettings(Struct, frozen=True, kw_only=True):
    """Which store keeps the sessions."""

    kind: Literal["sqlite", "memory", "postgres"] = "sqlite"
    path: Path | None = None
    url: str | None = None
    url_by_host: bool = False
    """True where the host names the server: then nothing of the operator's meets it."""
    connections: int = 3
    prepare: Literal["auto", "on", "off"] = "auto"


class MemorySettings(Struct, frozen=True, kw_only=True):
    """How memory is injected."""

    sources: tuple[str, ...] = ()
    """The slot `plugins.slots.memory`."""
    total_token_budget: int = 1250
    enable_synthesis: bool = False
    synthesis_model: str | None = None
    source_timeout_ms: int = 5000
    placement: Literal["append", "message"] = "append"


class EngineEntry(Struct, frozen=True, kw_only=True):
    """What the configuration says about one engine."""

    enabled: bool = True
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    isolation: Literal["process", "inline"] | None = None
    """`None` leaves it to where the engine comes from."""
    memory_limit_mb: int = 1024
    environment: tuple[str, ...] = ()
    """Names of variables that its process is given in addition."""
    timeouts_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    """By member of the engine, in wire spelling, such as `afterTurn`."""


class ModelSettings(Struct, frozen=True, kw_only=True):
    """A model behind an endpoint, as configured."""

    base_url: str
    name: str
    api_key: str = ""
    timeout_ms: int = 60_000
    retries: int = 2
    max_calls: int = 60
    window_ms: int = 600_000
    pause_ms: int = 300_000

    def __repr__(self) -> str:
        return f"ModelSettings({self.base_url!r}, {self.name!r})"


class EpisodeSettings(Struct, frozen=True, kw_only=True):
    """Where episodes go: to a webhook where there is an address, else into a file."""

    path: Path
    url: str | None = None
    search_url: str | None = None
    secret: str = ""
    timeout_ms: int = 30_000
    retries: int = 4

    def __repr__(self) -> str:
        return f"EpisodeSettings({self.url or 'file'!r})"


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """Which sessions are erased because nobody uses them any more."""

    max_age_ms: int | None = None
    max_bytes: int | None = None
    min_idle_ms: int = 3_600_000
    every_s: float = 3600.0
    archive_dir: Path | None = None

    @property
    def is_set(self) -> bool:
        """Whether any session is ever to be erased."""
        return self.max_age_ms is not None or self.max_bytes is not None


class ExemptionSettings(Struct, frozen=True, kw_only=True):
    """Patterns of the sessions of which nothing is kept."""

    ignored: tuple[str, ...] = ()
    stateless: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether there is any pattern."""
        return bool(self.ignored or self.stateless)


class LogSettings(Struct, frozen=True, kw_only=True):
    """What is written to stderr, and how."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["text", "json"] = "text"
    slow_call_ms: int = 10_000
    """Requests that take longer are told of; 0 for none."""


class ShadowSettings(Struct, frozen=True, kw_only=True):
    """A second engine that is asked the same, and whose answers are compared."""

    engine: str
    queue: int = 32
    timeout_ms: int = 10_000


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be configured, resolved."""

    state_dir: Path
    store: StoreSettings = StoreSettings()
    engine: str | None = None
    """The slot `plugins.slots.contextEngine`; `None` lets the host's capabilities decide."""
    entries: Mapping[str, EngineEntry] = field(default_factory=dict[str, EngineEntry])
    load_paths: tuple[str, ...] = ()
    engines_python: str | None = None
    """The Python that runs engines from outside; `None` leaves it to how the sidecar was installed."""
    file: Path | None = None
    """The configuration file, which need not be there."""
    links_file: Path | None = None
    """Where `engines link` keeps its list."""
    on_engine_failure: Literal["fail", "legacy"] = "fail"
    shadow: ShadowSettings | None = None
    memory: MemorySettings = MemorySettings()
    limits: Limits = Limits()
    pruning: PruningRules = PruningRules()
    token_counter: Literal["auto", "o200k", "cl100k", "estimate"] = "auto"
    model: ModelSettings | None = None
    """The model that summaries are asked of; `None` leaves the host's, where it has one."""
    episodes: EpisodeSettings | None = None
    """Where what was said in turns is handed over; `None` keeps it in the store alone."""
    retention: RetentionSettings = RetentionSettings()
    exemptions: ExemptionSettings = ExemptionSettings()
    """Sessions of which nothing is kept."""
    log: LogSettings = LogSettings()
    telemetry: bool = False
    """Whether requests are handed over to OpenTelemetry."""
    search_meaning: Literal["off", "auto", "on"] = "off"
    """Whether messages are searched by their meaning too."""
    search_substrings: bool | None = None
    """Whether parts of words are indexed."""
    recall_share: float = 0.6
    """Share of a budget that older messages may take that the prompt calls for."""
    warnings: tuple[str, ...] = ()
    """Unknown keys and the like, for the log."""

    @property
    def private_places(self) -> tuple[str, ...]:
        """Files and folders that are the sidecar's alone."""
        places = [self.state_dir, self.store.path, self.file]
        return tuple(str(place.absolute()) for place in places if place is not None)

    def entry(self, engine_id: str) -> EngineEntry:
        """The engine's part of the configuration; the default where it has none."""
        return self.entries.get(engine_id) or EngineEntry()
