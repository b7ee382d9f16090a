"""Merges file, environment, host and command line into the settings in force.

Precedence, strongest first: `engine` of the handshake, `config` of the handshake, environment, file, default.
`session/configure` stands above all of them, for one session or agent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.links import LINKS_FILE
from sidecar.server.configuration.from_wire import from_the_wire, without_secrets
from sidecar.server.configuration.log import log_settings
from sidecar.server.configuration.places import ENV_CONFIG, config_file, state_directory
from sidecar.server.configuration.settings import (
    EngineEntry,
    EpisodeSettings,
    ExemptionSettings,
    Limits,
    MemorySettings,
    ModelSettings,
    RetentionSettings,
    Settings,
    ShadowSettings,
    StoreSettings,
)

if TYPE_CHECKING:
    from sidecar.server.configuration.model import Configuration, Pruning, Shadow

ENV_ENGINE = "CONTEXT_SIDECAR_ENGINE"
ENV_MODEL_KEY = "CONTEXT_SIDECAR_MODEL_API_KEY"


class ConfigurationError(Exception):
    """Raised when a configured value is wrong."""

    def __init__(self, source: str, path: tuple[str | int, ...], reason: str) -> None:
        where = ".".join(map(str, path))
        super().__init__(f"{source}: {where}: {reason}" if where else f"{source}: {reason}")
        self.source = source
        self.path = path
        self.reason = reason


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
            links_file=links,
            log=log_settings(environ, warnings),
            warnings=tuple(warnings),
        )
    return _merged(from_file, dict(overrides or {}), engine, environ, links)


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if required:
            raise ConfigurationError("configuration file", (), "the file does not exist") from None
        return {}
    except OSError as error:
        raise ConfigurationError("configuration file", (), error.strerror or "unreadable") from error
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except ValueError as error:
        raise ConfigurationError("configuration file", (), str(error)) from error


def _merged(
    from_file: dict[str, Any],
    overrides: dict[str, Any],
    engine: str | None,
    environ: Mapping[str, str],
    links: Path,
) -> Settings:
    warnings: list[str] = []
    overrides = from_the_wire(overrides, warnings)
    _validated("configuration file", from_file)
    _validated("config", overrides)
    merged: Configuration = _validated(
        "configuration", _deep(without_secrets(from_file, overrides), overrides)
    )
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
        ),
        engine=engine or _slot(overrides) or environ.get(ENV_ENGINE) or merged.plugins.slots.contextEngine,
        entries={
            name: EngineEntry(
                enabled=entry.enabled,
                config=entry.config,
                isolation=entry.isolation,
                memory_limit_mb=entry.memoryLimitMb,
                timeouts_ms=entry.timeoutsMs,
            )
            for name, entry in merged.plugins.entries.items()
        },
        load_paths=tuple(merged.plugins.load.paths),
        links_file=links,
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
            host_request_timeout_ms=limits.hostRequestTimeoutMs,
            engine_timeout_ms=limits.engineTimeoutMs,
            default_token_budget=limits.defaultTokenBudget,
        ),
        pruning=_pruning(merged.pruning),
        token_counter=merged.tokens.counter,
        model=_model(merged, overrides, environ),
        episodes=_episodes(merged, from_file, overrides, environ, state_dir),
        retention=_retention(merged),
        exemptions=ExemptionSettings(
            ignored=tuple(merged.sessions.ignoreSessionPatterns),
            stateless=tuple(merged.sessions.statelessSessionPatterns),
        ),
        log=log,
        telemetry=merged.telemetry.enabled,
        search_meaning=merged.search.meaning,
        warnings=tuple(warnings),
    )


def _episodes(
    merged: Configuration,
    from_file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    environ: Mapping[str, str],
    state_dir: Path,
) -> EpisodeSettings | None:
    from sidecar.server.configuration.episodes import EpisodesWithoutUrl, episode_settings

    try:
        return episode_settings(merged, from_file, overrides, environ, state_dir)
    except EpisodesWithoutUrl:
        source = "config" if overrides.get("episodes") else "configuration file"
        raise ConfigurationError(source, ("episodes", "url"), "the webhook needs it") from None


def _model(
    merged: Configuration, overrides: Mapping[str, Any], environ: Mapping[str, str]
) -> ModelSettings | None:
    """The configured model; a key of the environment or file goes to no address that the host has named.

    Raises:
        ConfigurationError: an address without the name of a model.
    """
    model = merged.model
    if model.baseUrl is None:
        return None
    given: dict[str, Any] = overrides.get("model") or {}
    if model.name is None:
        raise ConfigurationError(
            "config" if given else "configuration file", ("model", "name"), "model.baseUrl needs it"
        )
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


def _validated(source: str, values: Mapping[str, Any]) -> Any:
    from pydantic import ValidationError

    from sidecar.server.configuration.model import Configuration

    try:
        return Configuration.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ConfigurationError(source, first["loc"], first["msg"]) from None


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


def _listed(slot: str | list[str] | None) -> tuple[str, ...]:
    """The ids in a slot that takes one or several, each once."""
    given = [slot] if isinstance(slot, str) else slot or []
    return tuple(dict.fromkeys(given))
