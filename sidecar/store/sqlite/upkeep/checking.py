"""Whether a store file is sound."""

from pathlib import Path

import apsw

from sidecar.store.errors import StoreDamaged
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.schema import VERSION
from sidecar.store.sqlite.upkeep.looking import look
from sidecar.store.upkeep import Finding, Progress, judged

_SAVE = (
    "`context-sidecar db recover` saves what is readable, `context-sidecar db restore` brings a backup back"
)
_MOST = 10
"""Complaints of SQLite that are told."""


def check(path: Path, progress: Progress) -> list[Finding]:
    """What is right and wrong with the store; its file is not changed.

    Raises:
        StoreUnavailable: there is no store, or a newer or another program's.
    """
    try:
        connection, version = look(path)
    except StoreDamaged as error:
        return [Finding("file", False, str(error), _SAVE)]
    try:
        found = [_version(version)]
        found += _soundness(connection, progress)
        if all(finding.ok for finding in found) and version == VERSION:
            progress("comparing tables", 0, 0)
            found += judged(lambda statement: connection.execute(statement).get)
        return found
    except apsw.Error as error:
        return [Finding("file", False, f"the store cannot be read: {type(error).__name__}", _SAVE)]
    finally:
        connection.close()


def _version(version: int) -> Finding:
    if version == VERSION:
        return Finding("version", True, f"schema version {version}")
    return Finding(
        "version",
        True,
        f"schema version {version} of {VERSION}",
        "`context-sidecar db migrate` brings it up to date",
    )


def _soundness(connection: Connection, progress: Progress) -> list[Finding]:
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
        ).fetchall()
    ]
    complaints: list[str] = []
    for done, name in enumerate(names):
        progress(f"reading {name}", done, len(names))
        complaints += _complaints(connection, f"PRAGMA integrity_check('{name}')")
        if len(complaints) >= _MOST:
            break
    if not complaints:
        progress("reading free pages", len(names), len(names))
        complaints = _complaints(connection, "PRAGMA quick_check")
    if complaints:
        told = "; ".join(complaints[:_MOST])
        return [Finding("file", False, f"the file is damaged: {told}", _SAVE)]
    return [Finding("file", True, "every page of the file is sound")]


def _complaints(connection: Connection, statement: str) -> list[str]:
    try:
        said = [str(line) for (line,) in connection.execute(statement).fetchall()]
    except apsw.Error as error:
        return [str(error)]
    return [" ".join(line.split()) for line in said if line != "ok"]
