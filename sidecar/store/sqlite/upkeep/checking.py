"""Whether a store file is sound."""

from pathlib import Path

import apsw

from sidecar.store.errors import StoreDamaged
from sidecar.store.search.scope import MOST_POSITION, POSITION_BITS
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.schema import VERSION
from sidecar.store.sqlite.upkeep.looking import look
from sidecar.store.upkeep import Finding, Progress, judged

_SAVE = (
    "`context-sidecar db recover` saves what is readable, `context-sidecar db restore` brings a backup back"
)
_PLACE = f"session << {POSITION_BITS} | position"
_INDEXED_TO = "coalesce((SELECT value FROM marks WHERE name = 'search_from'), 0)"
_AGREEMENT = (
    (
        f"SELECT count(*) FROM messages WHERE row_id < {_INDEXED_TO} AND position <= {MOST_POSITION} "
        f"AND NOT EXISTS (SELECT 1 FROM search_docsize WHERE id = ({_PLACE}))",
        "messages cannot be found",
    ),
    (
        "SELECT count(*) FROM search_docsize WHERE NOT EXISTS (SELECT 1 FROM messages "
        f"WHERE session = id >> {POSITION_BITS} AND position = id & {MOST_POSITION} "
        f"AND row_id < {_INDEXED_TO})",
        "messages are indexed that are not there",
    ),
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
            found.append(_index(connection, progress))
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
        complaints = [each for each in complaints if "table main.search" not in each and "fts5" not in each]
    if complaints:
        told = "; ".join(complaints[:_MOST])
        return [Finding("file", False, f"the file is damaged: {told}", _SAVE)]
    return [Finding("file", True, "every page of the file is sound")]


def _index(connection: Connection, progress: Progress) -> Finding:
    """Whether the search index is sound, and has just the messages that it should have."""
    wrong: list[str] = []
    progress("reading the search index", 0, 0)
    wrong += _complaints(connection, "PRAGMA integrity_check('search')")
    for statement, complaint in _AGREEMENT:
        count = connection.execute(statement).get
        if count:
            wrong.append(f"{count} {complaint}")
    if wrong:
        return Finding("search index", False, "; ".join(wrong[:_MOST]), "`context-sidecar db reindex`")
    return Finding("search index", True, "ok")


def _complaints(connection: Connection, statement: str) -> list[str]:
    try:
        said = [str(line) for (line,) in connection.execute(statement).fetchall()]
    except apsw.Error as error:
        return [str(error)]
    return [" ".join(line.split()) for line in said if line != "ok"]
