"""Imports session files of pi and OpenClaw."""

from __future__ import annotations

from msgspec import Raw, Struct

from sidecar.messages.importers.transcript import (
    Imported,
    Node,
    Row,
    Source,
    Transcript,
    active_branch,
    encoded,
    exact,
    milliseconds,
    rows,
)


class _Row(Struct):
    type: str | None = None
    id: str | None = None
    parentId: str | None = None
    timestamp: str | int | float | None = None
    message: Raw = Raw(b"")
    customType: str | None = None
    content: Raw = Raw(b"")
    display: bool | None = None
    details: Raw = Raw(b"")
    summary: str | None = None
    fromId: str | None = None
    tokensBefore: int | None = None


def load(source: Source) -> Transcript:
    """The newest branch of the session's tree; first-version files are a plain list.

    A compaction's summary is imported only if the messages that it covers are not in the file.
    """
    transcript = Transcript("openclaw")
    found = list(rows(source, _Row, transcript))
    branch = _branch(found)
    for index, row in enumerate(found):
        raw = row.once(_message)
        if raw is None:
            transcript.skip(_kind(row.values))
        elif index not in branch:
            transcript.skip("other branch")
        elif row.values.type == "compaction" and transcript.items:
            transcript.skip("compaction")
        else:
            stamp = milliseconds(row.values.timestamp)
            transcript.items.append(Imported(raw, row.values.id, stamp, row.span))
    return transcript


def _branch(found: list[Row[_Row]]) -> set[int]:
    """The newest branch, plus side branches without messages, which have content added by extensions."""
    nodes = [Node(row.values.id, row.values.parentId) for row in found]
    branch = active_branch(nodes)
    places = {node.id: index for index, node in enumerate(nodes) if node.id is not None}
    side_of: dict[int, int] = {}
    for index, node in enumerate(nodes):
        if index not in branch:
            parent = places.get(node.parent, -1) if node.parent is not None else -1
            side_of[index] = side_of.get(parent, index)
    spoken = {side for index, side in side_of.items() if found[index].values.type == "message"}
    return branch | {index for index, side in side_of.items() if side not in spoken}


def _message(row: Row[_Row]) -> bytes | None:
    """The message of a row; `None` for rows that no model sees."""
    values = row.values
    if values.type == "message":
        return exact(row.line, values.message) if bytes(values.message)[:1] == b"{" else None
    stamp = milliseconds(values.timestamp)
    if values.type == "custom_message":
        made: dict[str, object] = {"role": "custom", "customType": values.customType or ""}
        made["content"] = Raw(exact(row.line, values.content) or b'""')
        made["display"] = values.display is True
        if values.details:
            made["details"] = Raw(exact(row.line, values.details))
    elif values.type == "branch_summary" and values.summary:
        made = {"role": "branchSummary", "summary": values.summary, "fromId": values.fromId}
    elif values.type == "compaction" and values.summary:
        made = {"role": "compactionSummary", "summary": values.summary, "tokensBefore": values.tokensBefore}
    else:
        return None
    return encoded(made if stamp is None else {**made, "timestamp": stamp})


def _kind(row: _Row) -> str:
    return row.type or "row without type"
