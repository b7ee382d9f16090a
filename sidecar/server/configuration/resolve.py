"""Which settings hold: the configuration file below what the host sends, and the places they come from."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import structs

from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.sources import LINKS_FILE
from sidecar.server.configuration.settings import (
    EngineEntry,
    EpisodeSettings,
    ExemptionSettings,
    Limits,
    LogSettings,
    MemorySettings,
    ModelSettings,
    RetentionSettings,
    Settings,
    ShadowSettings,
    StoreSettings,
)
from sidecar.store.errors import files_used_up

if TYPE_CHECKING:
    from sidecar.server.configuration.model import Configuration, Log, Pruning, Shadow


APPLICATION = "context-sidecar"
ENV_STATE_DIR = "CONTEXT_SIDECAR_STATE_DIR"
ENV_CONFIG = "CONTEXT_SIDECAR_CONFIG"

ENV_LEVEL = "CONTEXT_SIDECAR_LOG_LEVEL"
ENV_FORMAT = "CONTEXT_SIDECAR_LOG_FORMAT"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_VARIABLES = (("level", ENV_LEVEL, LEVELS), ("format", ENV_FORMAT, FORMATS))
ENV_SECRET = "CONTEXT_SIDECAR_EPISODES_SECRET"
EPISODES_FILE = "episodes.jsonl"
FILE_ONLY_AT_ALL = ("retention", "hosts", "engines")
"""Tables that decide about other hosts' sessions, files written, what hosts may name, programs run."""
FILE_ONLY = ("load",)
"""Members of `plugins` that decide which code is loaded."""
FILE_ONLY_OF_ENTRY = ("isolation", "memoryLimitMb", "environment")
"""Members of an entry that decide where its code runs, and what it is told."""
FOLDERS_OF_WORKSPACE = ("path", "pattern", "sessionStart")
"""Settings of the memory source `workspace` that name what it reads into prompts."""
_PLACE = re.compile(r"url|uri|host|server|endpoint|address|path|file|folder|directory", re.IGNORECASE)
"""Settings of plugins that say where a secret goes, by their names."""
FILE_ONLY_OF_EPISODES = ("path",)
"""Members of `episodes` that name a file."""
FILE = "configuration file"
HOST = "config"
ENVIRONMENT = "environment"
SECRET_PREFIX = "whsec_"
"""What keys of webhooks may begin with."""
ENV_ENGINE = "CONTEXT_SIDECAR_ENGINE"
ENV_MODEL_KEY = "CONTEXT_SIDECAR_MODEL_API_KEY"


def config_file(file: Path | None, environ: Mapping[str, str]) -> Path:
    """Where the configuration file is looked for."""
    if file is not None:
        return file
    if named := environ.get(ENV_CONFIG):
        return Path(named)
    if sys.platform == "linux":
        return _xdg(environ, "XDG_CONFIG_HOME", ".config") / "config.toml"
    from platformdirs import user_config_path

    return user_config_path(APPLICATION, appauthor=False) / "config.toml"


def state_directory(environ: Mapping[str, str], host: str | None, file: str | None) -> Path:
    """Where state is kept, as host, environment or file say, in this order, else by the platform's rules."""
    chosen = host or environ.get(ENV_STATE_DIR) or file
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "linux":
        return _xdg(environ, "XDG_STATE_HOME", ".local/state")
    from platformdirs import user_state_path

    return user_state_path(APPLICATION, appauthor=False)


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """The directory that the XDG rules give; the library for all platforms takes 10 ms to load."""
    base = environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / APPLICATION


def log_settings(
    environ: Mapping[str, str],
    warnings: list[str],
    file: Log | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LogSettings:
    """The log as configured; `warnings` gets a line for each variable that has no such value."""
    given: dict[str, Any] = {}
    if file is not None:
        given = {"level": file.level, "format": file.format, "slow_call_ms": file.slowCallMs}
    for name, variable, known in _VARIABLES:
        value = environ.get(variable, "")
        if not value or name in (overrides or {}):
            continue
        if value in known:
            given[name] = value
        else:
            warnings.append(f"{variable} is {value[:50]!r}, which is none of {', '.join(known)}")
    return structs.replace(LogSettings(), **given) if given else LogSettings()


def episode_settings(
    merged: Configuration,
    from_file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    environ: Mapping[str, str],
    state_dir: Path,
) -> EpisodeSettings | None:
    """Where episodes go, `None` where they are not kept.

    A file that says `enabled = false` is heeded whatever the host wants. The secret of the file or the
    environment signs nothing that goes to an address which the host has named, and the host names no file.
    """
    episodes = merged.episodes
    operators: dict[str, Any] = from_file.get("episodes") or {}
    hosts: dict[str, Any] = overrides.get("episodes") or {}
    if not episodes.enabled or operators.get("enabled") is False:
        return None
    path = operators.get("path")
    settings = EpisodeSettings(path=Path(path).expanduser() if path else state_dir / EPISODES_FILE)
    if episodes.backend == "file" or episodes.url is None:
        return settings
    named_by_host = bool(hosts.get("url") or hosts.get("searchUrl"))
    secret = hosts.get("secret") if named_by_host else episodes.secret or environ.get(ENV_SECRET)
    return EpisodeSettings(
        path=settings.path,
        url=episodes.url,
        search_url=episodes.searchUrl,
        secret=secret or "",
        timeout_ms=episodes.timeoutMs,
        retries=episodes.retries,
    )


def from_the_wire(overrides: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The overrides without such members; `warnings` gets a line for each of them."""
    episodes: Any = overrides.get("episodes")
    if isinstance(episodes, dict):
        kept_episodes = _without(
            "episodes", cast("dict[str, Any]", episodes), FILE_ONLY_OF_EPISODES, warnings
        )
        overrides = {**overrides, "episodes": kept_episodes}
    overrides = _without("", overrides, FILE_ONLY_AT_ALL, warnings)
    plugins: Any = overrides.get("plugins")
    if not isinstance(plugins, dict):
        return overrides
    kept = _without("plugins", cast("dict[str, Any]", plugins), FILE_ONLY, warnings)
    entries: Any = kept.get("entries")
    if isinstance(entries, dict):
        kept["entries"] = {
            name: _without(
                f"plugins.entries.{name}", cast("dict[str, Any]", entry), FILE_ONLY_OF_ENTRY, warnings
            )
            if isinstance(entry, dict)
            else entry
            for name, entry in cast("dict[str, Any]", entries).items()
        }
    return {**overrides, "plugins": kept}


class NotForHosts(Exception):
    """Raised when a host names what only the operator may name; `path` is the setting."""

    def __init__(self, path: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def check_places(overrides: dict[str, Any], root: Path, allowed: Iterable[str]) -> dict[str, Any]:
    """The overrides with whole paths in them; hosts name files and folders below the operator's own alone.

    `allowed` are folders that the operator opens to hosts in addition to `root`, the state folder.

    Raises:
        NotForHosts: something else is named.
    """
    for name in FOLDERS_OF_WORKSPACE:
        if name in _at(("plugins", "entries", "workspace", "config"), overrides):
            raise NotForHosts(
                ("plugins", "entries", "workspace", "config", name),
                "a host may not choose which files are read; set it in the configuration file",
            )
    roots = [root, *(Path(each).expanduser() for each in allowed)]
    state_dir = overrides.get("stateDir")
    if isinstance(state_dir, str):
        reason = (
            "a host may only name a folder inside the operator's state folder; set it with "
            "CONTEXT_SIDECAR_STATE_DIR or in the configuration file, or allow it there in hosts.stateDirs"
        )
        overrides = {**overrides, "stateDir": str(_inside(state_dir, roots, ("stateDir",), reason))}
    store = _at(("store",), overrides)
    if isinstance(path := store.get("path"), str):
        reason = (
            "a host may only name a file inside the operator's state folder; set it in the configuration file"
        )
        place = _inside(path, roots, ("store", "path"), reason)
        overrides = {**overrides, "store": {**store, "path": str(place)}}
    return overrides


def _inside(given: str, roots: list[Path], setting: tuple[str, ...], reason: str) -> Path:
    """The place that is meant, links resolved, so that none leads out again.

    Raises:
        NotForHosts: it is outside of all roots.
    """
    place = Path(os.path.realpath(roots[0] / Path(given).expanduser()))
    if not any(place.is_relative_to(os.path.realpath(root)) for root in roots):
        raise NotForHosts(setting, reason)
    return place


def without_secrets(from_file: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The file's settings without the secrets of plugins that the host sends to another place."""
    for name in _at(("plugins", "entries"), overrides):
        where = ("plugins", "entries", name, "config")
        if any(_PLACE.search(setting) for setting in _at(where, overrides)):
            from_file = _left_out(from_file, where)
    return from_file


def _at(names: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    found: Any = values
    for name in names:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _left_out(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The values, with the secrets gone from the table that these names lead to."""
    if not names:
        from sidecar.secrecy import is_secret

        return {name: value for name, value in values.items() if not is_secret(name)}
    inside: Any = values.get(names[0])
    if not isinstance(inside, dict):
        return values
    return {**values, names[0]: _left_out(cast("dict[str, Any]", inside), names[1:])}


def _without(
    where: str, given: dict[str, Any], names: tuple[str, ...], warnings: list[str]
) -> dict[str, Any]:
    prefix = f"{where}." if where else ""
    warnings += [
        f"{prefix}{name} is heeded in the configuration file only" for name in given if name in names
    ]
    return {name: value for name, value in given.items() if name not in names}


class Problem(NamedTuple):
    """One value that is wrong."""

    source: str
    """Which configuration has it: the file, `config` of the handshake, or the environment."""
    path: tuple[str | int, ...]
    reason: str

    def __str__(self) -> str:
        where = ".".join(map(str, self.path))
        return f"{self.source}: {where}: {self.reason}" if where else f"{self.source}: {self.reason}"


class ConfigurationError(Exception):
    """Raised when configured values are wrong; it has all of them."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems
        self.source, self.path, _ = problems[0]


def resolve(
    *,
    file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    engine: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings in force. Without file or overrides, no validation library is loaded.

    `overrides` is the host's `config`, `engine` its choice of engine.

    Raises:
        ConfigurationError: the file cannot be read, or a value in it or in the overrides is wrong.
    """
    path = config_file(file, environ)
    from_file = _read(path, required=file is not None or bool(environ.get(ENV_CONFIG)))
    links = path.with_name(LINKS_FILE)
    if not from_file and not overrides:
        warnings: list[str] = []
        return Settings(
            state_dir=state_directory(environ, None, None),
            engine=engine or environ.get(ENV_ENGINE),
            file=path,
            links_file=links,
            log=log_settings(environ, warnings),
            warnings=tuple(warnings),
        )
    return _merged(from_file, dict(overrides or {}), engine, environ, path)


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if required:
            raise ConfigurationError(Problem(FILE, (), "the file does not exist")) from None
        return {}
    except OSError as error:
        if files_used_up(error):
            raise
        raise ConfigurationError(Problem(FILE, (), error.strerror or "unreadable")) from error
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except ValueError as error:
        raise ConfigurationError(Problem(FILE, (), str(error))) from error


def _merged(
    from_file: dict[str, Any],
    overrides: dict[str, Any],
    engine: str | None,
    environ: Mapping[str, str],
    path: Path,
) -> Settings:
    warnings: list[str] = []
    overrides = from_the_wire(overrides, warnings)
    problems = [*_problems(FILE, from_file), *_problems(HOST, overrides)]
    if problems:
        raise ConfigurationError(*problems)
    root = state_directory(environ, None, from_file.get("stateDir"))
    hosts: dict[str, Any] = from_file.get("hosts") or {}
    try:
        overrides = check_places(overrides, root, hosts.get("stateDirs") or ())
    except NotForHosts as error:
        raise ConfigurationError(Problem(HOST, error.path, error.reason)) from None
    merged = _validated(_deep(without_secrets(from_file, overrides), overrides))
    if problems := list(_lacking(merged, overrides, environ)):
        raise ConfigurationError(*problems)
    warnings += [f"unknown setting {name}" for name in merged.unknown_keys()]
    log = log_settings(environ, warnings, merged.log, overrides.get("log"))

    limits = merged.limits
    host_state_dir = overrides.get("stateDir")
    state_dir = state_directory(environ, host_state_dir, from_file.get("stateDir"))
    return Settings(
        state_dir=state_dir,
        store=StoreSettings(
            kind=merged.store.kind,
            path=Path(merged.store.path).expanduser() if merged.store.path else None,
            url=merged.store.url,
            url_by_host=_names_server(overrides),
            connections=merged.store.connections,
            prepare=merged.store.prepare,
        ),
        engine=engine or _slot(overrides) or environ.get(ENV_ENGINE) or merged.plugins.slots.contextEngine,
        entries={
            name: EngineEntry(
                enabled=entry.enabled,
                config=entry.config,
                isolation=entry.isolation,
                memory_limit_mb=entry.memoryLimitMb,
                environment=tuple(entry.environment),
                timeouts_ms=entry.timeoutsMs,
            )
            for name, entry in merged.plugins.entries.items()
        },
        load_paths=tuple(merged.plugins.load.paths),
        engines_python=merged.engines.python,
        file=path,
        links_file=path.with_name(LINKS_FILE),
        on_engine_failure=merged.plugins.onEngineFailure,
        shadow=_shadow(merged.plugins.shadow),
        memory=MemorySettings(
            sources=_listed(merged.plugins.slots.memory),
            total_token_budget=merged.memory.totalTokenBudget,
            enable_synthesis=merged.memory.enableSynthesis,
            synthesis_model=merged.memory.synthesisModel,
            source_timeout_ms=merged.memory.sourceTimeoutMs,
            placement=merged.memory.placement,
        ),
        limits=Limits(
            max_message_bytes=limits.maxMessageBytes,
            max_in_flight=limits.maxInFlight,
            max_parked_bytes=limits.maxParkedBytes,
            cache_bytes=limits.cacheBytes,
            host_request_timeout_ms=limits.hostRequestTimeoutMs,
            engine_timeout_ms=limits.engineTimeoutMs,
            default_token_budget=limits.defaultTokenBudget,
        ),
        pruning=_pruning(merged.pruning),
        token_counter=merged.tokens.counter,
        model=_model(merged, overrides, environ),
        episodes=episode_settings(merged, from_file, overrides, environ, state_dir),
        retention=_retention(merged),
        exemptions=ExemptionSettings(
            ignored=tuple(merged.sessions.ignoreSessionPatterns),
            stateless=tuple(merged.sessions.statelessSessionPatterns),
        ),
        log=log,
        telemetry=merged.telemetry.enabled,
        search_meaning=merged.search.meaning,
        search_substrings=merged.search.substrings,
        recall_share=merged.recall.share,
        warnings=tuple(warnings),
    )


def _model(
    merged: Configuration, overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> ModelSettings | None:
    """The configured model; a key of the environment or file goes to no address that the host has named."""
    model = merged.model
    if model.baseUrl is None or model.name is None:
        return None
    given: dict[str, Any] = overrides.get("model") or {}
    key = given.get("apiKey") if given.get("baseUrl") else model.apiKey or environ.get(ENV_MODEL_KEY)
    return ModelSettings(
        base_url=model.baseUrl,
        name=model.name,
        api_key=key or "",
        timeout_ms=model.timeoutMs,
        retries=model.retries,
        max_calls=model.maxCalls,
        window_ms=model.windowMs,
        pause_ms=model.pauseMs,
    )


def _pruning(given: Pruning) -> PruningRules:
    return PruningRules(
        enabled=given.enabled,
        start_share=given.startShare,
        recent_share=given.recentShare,
        clear_share=given.clearShare,
        recent_groups=given.recentGroups,
        trim_tokens=given.trimTokens,
        head_chars=given.headChars,
        tail_chars=given.tailChars,
        clear_tokens=given.clearTokens,
        duplicates=given.duplicates,
        failures=given.failures,
        images=given.images,
        protected_tools=tuple(given.protectedTools),
    )


def _shadow(given: Shadow) -> ShadowSettings | None:
    if given.engine is None:
        return None
    return ShadowSettings(engine=given.engine, queue=given.queue, timeout_ms=given.timeoutMs)


def _retention(merged: Configuration) -> RetentionSettings:
    given = merged.retention
    return RetentionSettings(
        max_age_ms=None if given.maxAgeDays is None else int(given.maxAgeDays * 86_400_000),
        max_bytes=None if given.maxSizeMb is None else given.maxSizeMb << 20,
        min_idle_ms=int(given.minIdleMinutes * 60_000),
        every_s=given.everyMinutes * 60,
        archive_dir=Path(given.archiveDir).expanduser() if given.archiveDir else None,
    )


def _problems(source: str, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Every value that is wrong for itself."""
    from pydantic import ValidationError

    try:
        _validated(values)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            yield Problem(source, one["loc"], one["msg"])


def _validated(values: Mapping[str, Any]) -> Configuration:
    from sidecar.server.configuration.model import Configuration

    return Configuration.model_validate(dict(values))


def _lacking(
    merged: Configuration, overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Every value that is of no use without another one, or without a package."""

    def problem(table: str, name: str, reason: str) -> Problem:
        return Problem(HOST if overrides.get(table) else FILE, (table, name), reason)

    if merged.tokens.counter in ("o200k", "cl100k"):
        from sidecar.tokens.choose import CounterUnavailable, counter

        try:
            counter(merged.tokens.counter)
        except CounterUnavailable as error:
            yield problem("tokens", "counter", str(error))
    if merged.model.baseUrl is not None and merged.model.name is None:
        yield problem("model", "name", "model.baseUrl needs it")
    episodes = merged.episodes
    if episodes.enabled and episodes.backend == "webhook" and episodes.url is None:
        yield problem("episodes", "url", "the webhook needs it")
    empty = "the key is empty, so anybody could sign with it"
    if episodes.secret is not None:
        if _is_empty_key(episodes.secret):
            yield problem("episodes", "secret", empty)
    elif episodes.enabled and episodes.backend == "webhook" and _is_empty_key(environ.get(ENV_SECRET) or "-"):
        yield Problem(ENVIRONMENT, (ENV_SECRET,), empty)


def _is_empty_key(secret: str) -> bool:
    return not secret.strip().removeprefix(SECRET_PREFIX).strip()


def _deep(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _deep(under, value) if isinstance(under, dict) and isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]
    return merged


def _slot(values: Mapping[str, Any]) -> str | None:
    plugins: dict[str, Any] = values.get("plugins") or {}
    slots: dict[str, Any] = plugins.get("slots") or {}
    return slots.get("contextEngine")


def _names_server(overrides: Mapping[str, Any]) -> bool:
    store: dict[str, Any] = overrides.get("store") or {}
    return bool(store.get("url"))


def _listed(slot: str | list[str] | None) -> tuple[str, ...]:
    """The ids in a slot that takes one or several, each once."""
    given = [slot] if isinstance(slot, str) else slot or []
    return tuple(dict.fromkeys(given))
