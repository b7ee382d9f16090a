"""The engines that a sidecar with these settings would find, and which of them is selected."""

from __future__ import annotations

import os
from pathlib import Path

from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common
from sidecar.engine.sources import EngineSources, Found
from sidecar.server.configuration.places import ENV_STATE_DIR, config_file
from sidecar.server.configuration.resolve import ConfigurationError, resolve
from sidecar.server.configuration.settings import Settings


def settings_of(common: Common) -> Settings:
    """The settings in force.

    Raises:
        CommandFailed: the configuration is wrong.
    """
    environ = dict(os.environ)
    if common.state_dir is not None:
        environ[ENV_STATE_DIR] = str(common.state_dir)
    try:
        return resolve(file=common.config, environ=environ)
    except ConfigurationError as error:
        raise CommandFailed(f"{error} (`context-sidecar config validate` checks the file)") from None


def sources_of(settings: Settings) -> EngineSources:
    """Where engines are looked for."""
    return EngineSources(links=settings.links_file, paths=settings.load_paths)


def engine_named(settings: Settings, name: str) -> Found:
    """The engine of that id.

    Raises:
        CommandFailed: there is none.
    """
    found = sources_of(settings).named(name)
    if found is None:
        names = ", ".join(known.id for known in sources_of(settings).all())
        raise CommandFailed(f"there is no engine {name!r}; there are: {names}")
    return found


def links_of(settings: Settings) -> Path:
    """The file with the linked folders."""
    assert settings.links_file is not None
    return settings.links_file


def file_of(common: Common) -> Path:
    """The configuration file, there or not."""
    return config_file(common.config, os.environ)
