"""The configured store and settings that a command is about."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common
from sidecar.server.configuration.resolve import ENV_STATE_DIR, ConfigurationError, resolve
from sidecar.server.configuration.settings import Settings


class Target(NamedTuple):
    """The configured store: a SQLite file, or a PostgreSQL connection."""

    path: Path | None
    url: str | None
    settings: Settings

    @property
    def name(self) -> str:
        """What to call it in front of people; no password is in it."""
        return str(self.path) if self.path is not None else "the PostgreSQL store"

    def file(self, instead: str) -> Path:
        """The SQLite file.

        Raises:
            CommandFailed: the store is on a server; `instead` says what to do there.
        """
        if self.path is None:
            raise CommandFailed(f"this is for stores in a file; for PostgreSQL {instead}")
        return self.path


def settings_of(common: Common) -> Settings:
    """The settings by which a sidecar would be started.

    Raises:
        CommandFailed: the configuration is wrong.
    """
    environ = dict(os.environ)
    if common.state_dir is not None:
        environ[ENV_STATE_DIR] = str(common.state_dir)
    try:
        return resolve(file=common.config, environ=environ)
    except ConfigurationError as error:
        raise CommandFailed(f"{error} (`context-sidecar config validate` checks it)") from None


def target_of(common: Common) -> Target:
    """The store that the configuration names.

    Raises:
        CommandFailed: the configuration is wrong, or keeps nothing beyond the process.
    """
    settings = settings_of(common)
    store = settings.store
    if store.kind == "memory":
        raise CommandFailed("store.kind is memory: nothing is kept that could be looked after")
    if store.kind == "postgres":
        if store.url is None:
            raise CommandFailed(
                "store.kind is postgres, but store.url is not set (see `context-sidecar config show`)"
            )
        return Target(None, store.url, settings)
    path = store.path or settings.state_dir / "context.db"
    # What SQLite writes aside while it works holds messages too, and stays in the private directory.
    os.environ.setdefault("SQLITE_TMPDIR", str(path.parent))
    return Target(path, None, settings)


@contextmanager
def store_failures() -> Generator[None]:
    """Turns what a store raises into one line with its hint."""
    from sidecar.store.errors import StoreUnavailable

    try:
        yield
    except StoreUnavailable as error:
        raise CommandFailed(f"{error} ({error.hint.rstrip('.')})" if error.hint else str(error)) from error
