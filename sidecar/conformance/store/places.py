"""Places for the stores that come with the package."""

import os
import shutil
import tempfile
from pathlib import Path

from sidecar.store import open_store
from sidecar.store.contract import SessionStore
from sidecar.store.search import Extract

POSTGRES_URL = "CONTEXT_SIDECAR_CHECK_POSTGRES_URL"
"""Environment variable with the URL of a PostgreSQL server on which checks may create databases."""


class MemoryPlace:
    """The memory of this process."""

    capabilities = ("search", "regex", "buffer")

    def store(self, extract: Extract) -> SessionStore:
        """See `StorePlace`."""
        return open_store("memory", extract=extract)

    def remove(self) -> None:
        """See `StorePlace`."""


class SQLitePlace:
    """A database file in a temporary folder."""

    capabilities = ("durable", "shared", "search", "regex", "buffer")

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="context-sidecar-"))

    def store(self, extract: Extract) -> SessionStore:
        """See `StorePlace`."""
        return open_store("sqlite", self._folder / "store.db", extract=extract)

    def remove(self) -> None:
        """See `StorePlace`."""
        shutil.rmtree(self._folder)


class PostgresPlace:
    """A PostgreSQL database created for one check and dropped after it."""

    capabilities = SQLitePlace.capabilities

    def __init__(self) -> None:
        url = os.environ.get(POSTGRES_URL)
        if not url:
            raise LookupError(f"set {POSTGRES_URL} to a server where databases may be created and dropped")
        self._url = url
        self._name = f"context_sidecar_check_{os.urandom(6).hex()}"
        self._on_server(f"CREATE DATABASE {self._name} ENCODING 'UTF8' TEMPLATE template0")

    def store(self, extract: Extract) -> SessionStore:
        """See `StorePlace`."""
        from psycopg.conninfo import make_conninfo

        return open_store("postgres", url=make_conninfo(self._url, dbname=self._name), extract=extract)

    def remove(self) -> None:
        """See `StorePlace`."""
        self._on_server(f"DROP DATABASE {self._name} WITH (FORCE)")

    def _on_server(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement.encode())
