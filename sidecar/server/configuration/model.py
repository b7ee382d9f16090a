"""The shape of the configuration file, which is also that of `initializationOptions.contextEngine.config`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

Pattern = Annotated[str, Field(min_length=1, max_length=1024)]


class Part(BaseModel):
    """Base of every table: unknown keys are kept, so that they can be warned about."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Store(Part):
    """`[store]`: where sessions are kept."""

    kind: Literal["sqlite", "memory", "postgres"] = "sqlite"
    """`sqlite` keeps them in one file, `memory` for as long as the process lives."""
    path: str | None = None
    """The SQLite file; default `context.db` in the state directory."""
    url: str | None = None
    """The PostgreSQL connection, for `postgres`."""
    connections: int = Field(default=3, ge=1, le=100)
    """Connections to PostgreSQL at most; idle ones are closed after 30 seconds."""
    prepare: Literal["auto", "on", "off"] = "auto"
    """Whether statements are prepared on the server; `auto` does so unless there is a pooler."""


class Slots(Part):
    """`[plugins.slots]`: which plugin fills an exclusive place."""

    contextEngine: str | None = Field(default=None, min_length=1)
    """Id of the engine."""
    memory: str | list[str] | None = None
    """Ids of memory sources."""


class Entry(Part):
    """`[plugins.entries.<id>]`: one plugin."""

    enabled: bool = True
    """False keeps the plugin from being selected."""
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The plugin's own settings, checked by its own model."""
    isolation: Literal["process", "inline"] | None = None
    """Where an engine runs; heeded in the file only. By default engines from outside run in a process of
    their own."""
    memoryLimitMb: int = Field(default=1024, ge=64)
    """Most memory that an engine's own process may take, in mebibytes; heeded in the file only."""
    environment: list[str] = Field(default_factory=list[str])
    """Variables that an engine's own process is given in addition; heeded in the file only."""
    timeoutsMs: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict[str, int])
    """How long one call may take, in milliseconds, by member of the engine, such as `assemble`."""


class Load(Part):
    """`[plugins.load]`: plugins outside of installed packages; heeded in the file only."""

    paths: list[str] = Field(default_factory=list[str])
    """Folders that hold engine modules."""


class Shadow(Part):
    """`[plugins.shadow]`: a second engine that is asked the same; its answers are compared, never sent."""

    engine: str | None = Field(default=None, min_length=1)
    """Its id."""
    queue: int = Field(default=32, ge=1, le=10_000)
    """Requests that may wait for it; beyond that they are dropped and counted."""
    timeoutMs: int = Field(default=10_000, ge=1)
    """How long it may take for one call, in milliseconds."""


class Plugins(Part):
    """`[plugins]`: engines and memory sources."""

    slots: Slots = Slots()
    entries: dict[str, Entry] = Field(default_factory=dict[str, Entry])
    load: Load = Load()
    shadow: Shadow = Shadow()
    onEngineFailure: Literal["fail", "legacy"] = "fail"
    """What happens when the selected engine cannot serve: an error, or `legacy` in its place."""


class Engines(Part):
    """`[engines]`: how engines from outside are run; heeded in the file only."""

    python: str | None = Field(default=None, min_length=1)
    """The Python that runs them; by default the sidecar's own, or `python3` for a build without Python."""


class Memory(Part):
    """`[memory]`: injection of memory."""

    totalTokenBudget: int = Field(default=1250, ge=0)
    """Tokens per compilation."""
    enableSynthesis: bool = False
    """Let a model merge fragments."""
    synthesisModel: str | None = None
    """Model for it."""
    sourceTimeoutMs: int = Field(default=5000, ge=1)
    """How long one source may take, in milliseconds."""
    placement: Literal["append", "message"] = "append"
    """Where memory for a message stands: at the end of the user's message, or in a message of its own."""


class LimitsTable(Part):
    """`[limits]`: bounds."""

    maxMessageBytes: int = Field(default=256 << 20, ge=1024)
    """Largest body of one message, in bytes."""
    maxInFlight: int = Field(default=256, ge=1)
    """Requests worked on at once."""
    maxParkedBytes: int = Field(default=64 << 20, ge=0)
    """Bytes of waiting requests beyond which a request is refused."""
    cacheBytes: int = Field(default=128 << 20, ge=0)
    """Memory for whatever is cached of sessions, in bytes, roughly; least recently used ones give way."""
    hostRequestTimeoutMs: int = Field(default=120_000, ge=1)
    """How long the host may take to answer, in milliseconds."""
    engineTimeoutMs: int = Field(default=120_000, ge=1)
    """How long an engine may take for one call, in milliseconds; waiting for the host counts too."""
    defaultTokenBudget: int = Field(default=128_000, ge=1)
    """Budget where a request names none, in tokens."""


class Pruning(Part):
    """`[pruning]`: replacing old tool results and images; shares are of the token budget."""

    enabled: bool = True
    """False sends every result whole that the engine chooses."""
    startShare: float = Field(default=1.0, ge=0, le=1)
    """Nothing is pruned while the session takes less."""
    recentShare: float = Field(default=0.25, ge=0, le=1)
    """The newest part, which stays whole."""
    clearShare: float = Field(default=0.5, ge=0, le=1)
    """Results with more than this behind them are left out; nearer ones are shortened."""
    recentGroups: int = Field(default=3, ge=1)
    """The newest calls with their results, which stay whole."""
    trimTokens: int = Field(default=1000, ge=1)
    """Larger results are shortened."""
    headChars: int = Field(default=1200, ge=0)
    """Characters kept of the beginning of a shortened result."""
    tailChars: int = Field(default=600, ge=0)
    """Characters kept of its end."""
    clearTokens: int = Field(default=200, ge=0)
    """Smaller results are never left out."""
    duplicates: bool = True
    """Leave out a result where the same call was made again later."""
    failures: bool = True
    """Shorten the results of calls that failed."""
    images: bool = True
    """Leave out old images."""
    protectedTools: list[str] = Field(default_factory=list[str])
    """Tools whose results stay; `*` stands for anything."""


class Tokens(Part):
    """`[tokens]`: how tokens are counted."""

    counter: Literal["auto", "o200k", "cl100k", "estimate"] = "auto"
    """`auto` counts exactly where the `tokens` extra is installed."""


class Search(Part):
    """`[search]`: how what was said is found again."""

    meaning: Literal["off", "auto", "on"] = "off"
    """By meaning as well as by words (extra `semantic`); `auto` where the extra is installed."""
    substrings: bool | None = None
    """Index parts of words too, by default not in PostgreSQL; else a search for them reads the messages."""


class Recall(Part):
    """`[recall]`: older messages that the prompt calls for, where the history no longer fits."""

    share: float = Field(default=0.6, ge=0, le=0.75)
    """Share of the budget that they may take; 0 recalls nothing."""


class Model(Part):
    """`[model]`: a model behind an OpenAI-compatible endpoint (extra `http`)."""

    baseUrl: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Where it is, such as `https://api.example.org/v1`; unset asks the host's model."""
    name: str | None = Field(default=None, min_length=1)
    """Which model."""
    apiKey: str | None = Field(default=None, repr=False)
    """Its key."""
    timeoutMs: int = Field(default=60_000, ge=1)
    """How long one question may take, retries included, in milliseconds."""
    retries: int = Field(default=2, ge=0, le=10)
    """Further tries after a failure that may pass."""
    maxCalls: int = Field(default=60, ge=0)
    """Questions within `windowMs`."""
    windowMs: int = Field(default=600_000, ge=1)
    """The time in which questions are counted, in milliseconds."""
    pauseMs: int = Field(default=300_000, ge=0)
    """How long a model is left alone after three failures in a row, in milliseconds."""


class Episodes(Part):
    """`[episodes]`: turns that are handed over to somebody outside of the store."""

    enabled: bool = False
    """Buffer what is said in turns, for engines that take part, and deliver it."""
    backend: Literal["file", "webhook"] = "file"
    """Where to: a file of JSON lines, or an HTTP endpoint (extra `http`)."""
    path: str | None = None
    """The file, by default `episodes.jsonl` in the state directory; heeded in the file only."""
    url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Where the webhook is."""
    searchUrl: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Where what was delivered can be searched; for the memory source `episodes`."""
    secret: str | None = Field(default=None, repr=False)
    """Key of the signature."""
    timeoutMs: int = Field(default=30_000, ge=100, le=600_000)
    """How long the delivery of one episode may take, retries included, in milliseconds."""
    retries: int = Field(default=4, ge=0, le=20)
    """Further tries within that time."""


class Retention(Part):
    """`[retention]`: when sessions are erased that nobody uses any more; heeded in the file only."""

    maxAgeDays: float | None = Field(default=None, gt=0)
    """Days without a change after which a session is erased; unset keeps them."""
    maxSizeMb: int | None = Field(default=None, ge=1)
    """Mebibytes that the store may take, beyond which those go that were not changed for longest."""
    minIdleMinutes: float = Field(default=60, ge=0)
    """A session that was changed within so many minutes stays, whatever the rules say."""
    everyMinutes: float = Field(default=60, gt=0)
    """How often a serving sidecar looks, in minutes."""
    archiveDir: str | None = Field(default=None, min_length=1)
    """Folder where a session is written as lines of JSON before it is erased."""


class Hosts(Part):
    """`[hosts]`: what hosts may name in their `config`; heeded in the file only."""

    stateDirs: list[str] = Field(default_factory=list[str])
    """Folders in which a host may keep its state, in addition to the state folder."""


class Sessions(Part):
    """`[sessions]`: sessions of which nothing is kept, by their keys or ids."""

    ignoreSessionPatterns: list[Pattern] = Field(default_factory=list[str])
    """Sessions that engines never see; `*` stands for anything but a colon, `**` for anything."""
    statelessSessionPatterns: list[Pattern] = Field(default_factory=list[str])
    """Sessions that the engine serves without adding anything to the store."""


class Log(Part):
    """`[log]`: what is written to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    """Lines of at least this weight."""
    format: Literal["text", "json"] = "text"
    """For people, or one JSON object a line."""
    slowCallMs: int = Field(default=10_000, ge=0)
    """Requests that take longer are told of, in milliseconds; 0 for none."""


class Telemetry(Part):
    """`[telemetry]`: spans and metrics for OpenTelemetry (extra `otel`)."""

    enabled: bool = False
    """Send them to where the standard variables `OTEL_*` say."""


class Configuration(Part):
    """The whole file."""

    stateDir: str | None = None
    """Directory for everything that the sidecar keeps."""
    store: Store = Store()
    plugins: Plugins = Plugins()
    engines: Engines = Engines()
    memory: Memory = Memory()
    limits: LimitsTable = LimitsTable()
    pruning: Pruning = Pruning()
    tokens: Tokens = Tokens()
    search: Search = Search()
    recall: Recall = Recall()
    model: Model = Model()
    episodes: Episodes = Episodes()
    retention: Retention = Retention()
    hosts: Hosts = Hosts()
    sessions: Sessions = Sessions()
    log: Log = Log()
    telemetry: Telemetry = Telemetry()

    def unknown_keys(self) -> Iterator[str]:
        """Dotted names of keys that mean nothing here."""
        yield from _unknown(self, "")


def _unknown(part: BaseModel, prefix: str) -> Iterator[str]:
    for name in part.model_extra or {}:
        yield prefix + name
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _unknown(value, f"{prefix}{name}.")
        elif isinstance(value, dict):
            for key, member in cast("dict[str, object]", value).items():
                if isinstance(member, BaseModel):
                    yield from _unknown(member, f"{prefix}{name}.{key}.")
