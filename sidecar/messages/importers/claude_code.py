"""Imports Claude Code session files.

Each row has one block of a message. Each row becomes a separate message with only the members that a request
may have, `role` and `content`: the provider merges consecutive ones, and times and ids stay exact.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from sidecar.messages.contract import Usage
from sidecar.messages.dialects.base import UsageMembers
from sidecar.messages.dialects.decoding import tolerant
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


class _Message(Struct):
    role: str | None = None
    id: str | None = None
    content: Raw = Raw(b"")
    usage: Raw = Raw(b"")


class _Row(Struct):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    logicalParentUuid: str | None = None
    isSidechain: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    subtype: str | None = None
    timestamp: str | None = None
    message: _Message | None = None


def load(source: Source) -> Transcript:
    """The newest branch of the main conversation, without sidechains, which belong to subagents."""
    transcript = Transcript("anthropic")
    kept: list[Row[_Row]] = []
    found = list(rows(source, _Row, transcript))
    # A subagent's own file consists only of its sidechain.
    main = not any(row.values.message and not row.values.isSidechain for row in found)
    for row in found:
        reason = _skip_reason(row.values, sidechain=main)
        if reason is None:
            kept.append(row)
        else:
            transcript.skip(reason)
    branch = _branch(kept)
    # Every row of an answer repeats its usage; the last one has the final count.
    last = {_message_id(kept[index]): index for index in sorted(branch)}
    for index, each in enumerate(kept):
        row, message = each.values, each.values.message
        if message is None or row.type not in ("user", "assistant"):
            transcript.skip(_kind(row))
        elif index not in branch:
            transcript.skip("other branch")
        elif row.isCompactSummary and transcript.items:
            transcript.skip("compaction summary")
        else:
            stamp = milliseconds(row.timestamp)
            item = Imported(each.once(_message_of), row.uuid, stamp, each.span)
            is_last = message.id is None or last[message.id] == index
            transcript.items.append(item._replace(usage=_usage(each)) if is_last else item)
    return transcript


def _usage(row: Row[_Row]) -> Usage | None:
    raw = bytes(row.values.message.usage) if row.values.message else b""
    found = tolerant(raw, UsageMembers) if raw else None
    return found.total() if found else None


def _message_of(row: Row[_Row]) -> bytes:
    """The message of a row."""
    message = row.values.message or _Message()
    content = Raw(exact(row.line, message.content))
    return encoded({"role": message.role or row.values.type, "content": content})


def _skip_reason(row: _Row, *, sidechain: bool) -> str | None:
    """Why a row is not part of the conversation, or `None` if it is.

    `sidechain` means that the file consists only of a sidechain.
    """
    if row.isSidechain and not sidechain:
        return "sidechain"
    if row.uuid is None and row.message is None:
        return _kind(row)
    return "api error" if row.isApiErrorMessage else None


def _kind(row: _Row) -> str:
    return ": ".join(filter(None, (row.type or "row without type", row.subtype)))


def _branch(kept: list[Row[_Row]]) -> set[int]:
    """The newest branch, plus rows off the branch that belong to messages on it.

    Parallel calls create small forks: the result of one call is attached to its call's row, while the
    conversation continues from another's.
    """
    nodes = [Node(row.values.uuid, row.values.parentUuid or row.values.logicalParentUuid) for row in kept]
    branch = active_branch(nodes)
    parts = {_message_id(kept[index]) for index in branch} - {None}
    for index, row in enumerate(kept):
        if index not in branch and _message_id(row) in parts:
            branch.add(index)
    ids = {nodes[index].id for index in branch}
    for index, row in enumerate(kept):
        if index not in branch and nodes[index].parent in ids and b'"tool_result"' in row.line:
            branch.add(index)
    return branch


def _message_id(row: Row[_Row]) -> str | None:
    return None if row.values.message is None else row.values.message.id
