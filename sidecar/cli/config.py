"""`context-sidecar config`: show the effective settings, and validate the configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click
import msgspec

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.output import console, print_json
from sidecar.secrecy import masked_settings
from sidecar.server.configuration.resolve import ENV_STATE_DIR, ConfigurationError, config_file, resolve
from sidecar.server.configuration.settings import Settings

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@click.group("config")
def command() -> None:
    """Show the effective settings, or validate the configuration file."""


@command.command("show")
@common_options
def show(common: Common) -> int:
    """Show the settings that a sidecar would start with."""
    try:
        settings = _settings(common)
    except ConfigurationError as error:
        raise CommandFailed(f"{error} (correct it; `context-sidecar config validate` checks it)") from None
    values = _values(common, settings)
    if common.json:
        print_json(values)
        return OK
    out = console()
    path = config_file(common.config, os.environ)
    note = "" if path.is_file() else " (does not exist; these are the defaults)"
    out.print(f"# {path}{note}", soft_wrap=True)
    for line in _lines(values, ""):
        out.print(line, soft_wrap=True)
    return OK


@command.command("validate", short_help="Check the configuration file.")
@common_options
def validate(common: Common) -> int:
    """Check the configuration file, including the settings of every engine that it names."""
    errors: list[str] = []
    warnings: list[str] = []
    try:
        settings = _settings(common)
    except ConfigurationError as error:
        errors += map(str, error.problems)
    else:
        warnings += settings.warnings
        errors += [*_store_errors(settings), *_engine_errors(settings)]
    if common.json:
        print_json({"ok": not errors, "errors": errors, "warnings": warnings})
    else:
        out = console(stderr=True)
        for line in errors:
            out.print(f"wrong: {line}", soft_wrap=True)
        for line in warnings:
            out.print(f"warning: {line}", soft_wrap=True)
        if not errors:
            path = config_file(common.config, os.environ)
            console().print(
                f"{path}: {'ok' if path.is_file() else 'does not exist, and is not needed'}", soft_wrap=True
            )
    return FAILURE if errors else OK


def wrong_settings(common: Common) -> list[str]:
    """The errors in the configuration itself, without those of engine settings."""
    try:
        return _store_errors(_settings(common))
    except ConfigurationError as error:
        return list(map(str, error.problems))


def _store_errors(settings: Settings) -> list[str]:
    if settings.store.kind == "postgres" and not settings.store.url:
        example = "postgresql://user@host:5432/database"
        return [f"configuration file: store.url: required by store.kind = postgres, for example {example}"]
    return []


def _settings(common: Common) -> Settings:
    environ = dict(os.environ)
    if common.state_dir is not None:
        environ[ENV_STATE_DIR] = str(common.state_dir)
    return resolve(file=common.config, environ=environ)


def _engine_errors(settings: Settings) -> list[str]:
    """The errors that engines find in their settings; no engine is started."""
    from sidecar.memory.coordinator import BUILT_IN as SOURCES
    from sidecar.server.engines.registry import EngineRegistry
    from sidecar.server.failures import EngineUnavailable

    def no_host(*given: object) -> None:
        raise AssertionError(given)

    # Assume a host with every capability, so that no engine is refused for lack of one.
    every = frozenset(
        ("runtime/complete", "runtime/compact", "runtime/rewriteTranscript", "memory/getContext")
    )
    slot = EngineRegistry(settings, every, no_host)  # pyright: ignore[reportArgumentType]
    sources = {*SOURCES, *settings.memory.sources}
    named = [name for name, entry in settings.entries.items() if entry.enabled and name not in sources]
    if settings.engine and settings.engine not in named:
        named.append(settings.engine)
    errors: list[str] = []
    for name in named:
        try:
            slot.check_settings(name)
        except EngineUnavailable as error:
            errors.append(str(error))
    return errors


def _values(common: Common, settings: Settings) -> dict[str, Any]:
    """The settings in the structure of the file, with the environment's overrides, secrets masked."""
    import tomllib

    from sidecar.server.configuration.model import Configuration

    path = config_file(common.config, os.environ)
    from_file = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    values = Configuration.model_validate(from_file).model_dump(mode="json")
    values["stateDir"] = str(settings.state_dir)
    values["plugins"]["slots"]["contextEngine"] = settings.engine
    return cast("dict[str, Any]", masked_settings(values))


def _lines(values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Lines of TOML with dotted keys; unset values become comments."""
    for name, value in values.items():
        key = f"{prefix}{_key(name)}"
        if isinstance(value, dict) and value:
            yield from _lines(cast("dict[str, Any]", value), f"{key}.")
        elif value is None:
            yield f"# {key} is not set"
        else:
            yield f"{key} = {_toml(cast('object', value))}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: object) -> str:
    """A value in TOML, which is JSON except for tables and the character DEL."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return "{" + ", ".join(f"{_key(name)} = {_toml(each)}" for name, each in members.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, cast("list[object]", value))) + "]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
