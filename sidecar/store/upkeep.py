"""What is told of a store by whom looks after it."""

from collections.abc import Callable

from msgspec import Struct

Progress = Callable[[str, int, int], None]
"""Told the name of a step, how much of it is done, and how much there is (0 where nobody knows)."""

CONSISTENCY = (
    (
        "messages of sessions",
        "SELECT count(*) FROM (SELECT uid FROM sessions LEFT JOIN messages ON session = uid "
        "GROUP BY uid, message_count, shared HAVING count(row_id) <> message_count - shared "
        "OR (count(row_id) > 0 AND (min(position) <> shared + 1 OR max(position) <> message_count))) "
        "AS found",
        "sessions lack messages, or have some that are not theirs",
    ),
    (
        "messages without session",
        "SELECT count(*) FROM messages WHERE session NOT IN (SELECT uid FROM sessions)",
        "messages belong to no session",
    ),
    (
        "forks",
        "SELECT count(*) FROM sessions AS child LEFT JOIN sessions AS origin ON origin.uid = child.parent "
        "WHERE child.parent IS NOT NULL AND (origin.uid IS NULL OR origin.message_count < child.shared)",
        "forks share messages with a session that does not have them",
    ),
    (
        "session keys",
        "SELECT count(*) FROM session_keys WHERE session NOT IN (SELECT uid FROM sessions)",
        "keys lead to sessions that are not there",
    ),
    (
        "summaries",
        "SELECT count(*) FROM summaries LEFT JOIN sessions ON uid = session "
        "WHERE uid IS NULL OR last_position > message_count OR first_position < 1",
        "summaries stand for messages that are not there",
    ),
)
"""What must hold between the tables: a name, a statement that counts what breaks it, what that means."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """One thing that was checked."""

    name: str
    ok: bool
    message: str
    fix: str | None = None
    """What to do about it."""


class NamespaceStats(Struct, frozen=True, rename="camel"):
    """The sessions of one namespace."""

    namespace: str
    sessions: int
    messages: int
    """Messages as the sessions see them: those that forks share count for each."""
    oldest_ms: int
    """When the session that has waited longest was changed, in milliseconds since 1970."""
    newest_ms: int


class StoreStats(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """How large a store is, and what is in it. Sizes are in bytes."""

    kind: str
    schema_version: int
    bytes: int
    """All of it, as the disk or the server sees it."""
    log_bytes: int | None = None
    """The write-ahead log, where the store has one of its own."""
    free_bytes: int | None = None
    """What is allocated and empty; `db vacuum` gives it back."""
    sessions: int
    messages: int
    """Messages that are kept; those that forks share count once."""
    message_bytes: int
    """Bodies of these messages."""
    summaries: int
    table_bytes: dict[str, int]
    """Bytes of each table, its indexes included."""
    namespaces: list[NamespaceStats]


def judged(count: Callable[[str], int]) -> list[Finding]:
    """What holds between the tables; `count` is asked each statement of `CONSISTENCY`."""
    found: list[Finding] = []
    for name, statement, complaint in CONSISTENCY:
        broken = count(statement)
        if broken:
            found.append(
                Finding(
                    name,
                    False,
                    f"{broken} {complaint}",
                    "`context-sidecar db recover` saves what is readable",
                )
            )
        else:
            found.append(Finding(name, True, "ok"))
    return found
