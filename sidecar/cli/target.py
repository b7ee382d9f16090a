"""The configured settings and store that a command works on."""

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
        """A name for people, without any password."""
        return str(self.path) if self.path is not None else "the PostgreSQL store"

    def file(self, instead: str) -> Path:
        """The SQLite file.

        Raises:
            CommandFailed: the store is on a server; `instead` says what to do there.
        """
        if self.path is None:
            raise CommandFailed(f"this command is for stores in a file; for PostgreSQL, {instead}")
        return self.path


def settings_of(common: Common) -> Settings:
    """The settings with which a sidecar would start.

    Raises:
        CommandFailed: the configuration is invalid.
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
        CommandFailed: the configuration is invalid, or the store is in memory.
    """
    settings = settings_of(common)
    store = settings.store
    if store.kind == "memory":
        raise CommandFailed("store.kind is memory: there is no stored data to work on")
    if store.kind == "postgres":
        if store.url is None:
            raise CommandFailed(
                "store.kind is postgres, but store.url is not set (see `context-sidecar config show`)"
            )
        return Target(None, store.url, settings)
    path = store.path or settings.state_dir / "context.db"
    # SQLite's temporary files hold messages too, so keep them in the private directory.
    os.environ.setdefault("SQLITE_TMPDIR", str(path.parent))
    return Target(path, None, settings)


@contextmanager
def store_failures() -> Generator[None]:
    """Convert a store's exceptions to `CommandFailed`, with the hint."""
    from sidecar.store.errors import StoreUnavailable

    try:
        yield
    except StoreUnavailable as error:
        raise CommandFailed(f"{error} ({error.hint.rstrip('.')})" if error.hint else str(error)) from error
