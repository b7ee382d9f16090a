"""`context-sidecar config`: the settings in force, and whether the file is right."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click
import msgspec

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json
from sidecar.server.configuration.places import ENV_STATE_DIR, config_file
from sidecar.server.configuration.resolve import ConfigurationError, resolve
from sidecar.server.configuration.settings import Settings

_CREDENTIALS = re.compile(r"//[^@/]*@")


@click.group("config")
def command() -> None:
    """The settings in force, and whether the file is right."""


@command.command("show")
@common_options
def show(common: Common) -> int:
    """Show the settings that a sidecar would start with."""
    try:
        settings = _settings(common)
    except ConfigurationError as error:
        raise CommandFailed(f"{error} (mend it; `context-sidecar config validate` checks it)") from None
    values = _values(common, settings)
    if common.json:
        print_json(values)
        return OK
    out = console()
    path = config_file(common.config, os.environ)
    out.print(f"# {path}{'' if path.is_file() else ' (not there; these are the defaults)'}")
    for line in _lines(values, ""):
        out.print(line, soft_wrap=True)
    return OK


@command.command("validate")
@common_options
def validate(common: Common) -> int:
    """Check the configuration file, with the settings of every engine that it names."""
    errors: list[str] = []
    warnings: list[str] = []
    try:
        settings = _settings(common)
    except ConfigurationError as error:
        errors.append(str(error))
    else:
        warnings += settings.warnings
        errors += _engine_errors(settings)
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
                f"{path}: {'ok' if path.is_file() else 'not there, and not needed'}", soft_wrap=True
            )
    return FAILURE if errors else OK


def _settings(common: Common) -> Settings:
    environ = dict(os.environ)
    if common.state_dir is not None:
        environ[ENV_STATE_DIR] = str(common.state_dir)
    return resolve(file=common.config, environ=environ)


def _engine_errors(settings: Settings) -> list[str]:
    """What the engines say about their settings; no engine is started."""
    from sidecar.memory.loading import BUILT_IN as SOURCES
    from sidecar.server.engines import EngineSlot
    from sidecar.server.seating import EngineUnavailable

    def no_host(*given: object) -> None:
        raise AssertionError(given)

    # A host may offer everything, so no engine is refused for want of that.
    every = frozenset(
        ("runtime/complete", "runtime/compact", "runtime/rewriteTranscript", "memory/getContext")
    )
    slot = EngineSlot(settings, every, no_host)  # pyright: ignore[reportArgumentType]
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
    """The settings in the shape of the file, with what the environment has changed."""
    import tomllib

    from sidecar.server.configuration.model import Configuration

    path = config_file(common.config, os.environ)
    from_file = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    values = Configuration.model_validate(from_file).model_dump(mode="json")
    values["stateDir"] = str(settings.state_dir)
    values["plugins"]["slots"]["contextEngine"] = settings.engine
    if values["store"]["url"]:
        values["store"]["url"] = _CREDENTIALS.sub("//***@", values["store"]["url"])
    if values["model"]["apiKey"]:
        values["model"]["apiKey"] = "***"
    if values["episodes"]["secret"]:
        values["episodes"]["secret"] = "***"
    service = values["plugins"]["entries"].get("http", {}).get("config", {})
    for name in {"apiKey", "headers"} & set(service):
        service[name] = "***"
    return values


def _lines(values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Dotted keys as TOML has them; what is not set is a comment."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _lines(cast("dict[str, Any]", value), f"{prefix}{name}.")
        elif value is None:
            yield f"# {prefix}{name} is not set"
        else:
            yield f"{prefix}{name} = {msgspec.json.encode(value).decode()}"
