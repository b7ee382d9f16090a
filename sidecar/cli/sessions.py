"""`context-sidecar sessions`: list, show, export, import and delete stored sessions."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Raw, Struct, json

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options, namespace_option
from sidecar.cli.output import console, print_json, print_table, shown_tokens
from sidecar.cli.own_sidecar import client_for, with_client
from sidecar.client.messages import StoredMessage
from sidecar.client.sidecar_client import SidecarClient
from sidecar.plurals import counted
from sidecar.private_files import write
from sidecar.protocol.session import GetSessionResult, SessionEntry
from sidecar.protocol.times import format_rfc3339

AT_ONCE = 100
"""Number of concurrent ingest requests during an import."""
EXCERPT = 100
"""Maximum length of a message in `show`, in characters."""


@click.group("sessions")
def command() -> None:
    """List, show, export, import or delete stored sessions."""


@command.command("list")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1), help="Maximum number of sessions."
)
@namespace_option
@common_options
def list_sessions(common: Common, limit: int, namespace: str) -> int:
    """List the sessions of a namespace, latest change first."""

    async def ask(client: SidecarClient) -> list[SessionEntry]:
        found: list[SessionEntry] = []
        async for entry in client.sessions(page_size=min(limit, 1000)):
            found.append(entry)
            if len(found) == limit:
                break
        return found

    entries = with_client(client_for(common, namespace=namespace), ask)
    if common.json:
        print_json({"namespace": namespace, "sessions": entries})
    elif not entries:
        console(stderr=True).print(f"There are no sessions in the namespace {namespace}.")
    else:
        # The gateway's keys are program and folder; many hosts have none.
        has_keys = any(entry.session_key for entry in entries)
        rows = (
            [
                e.session_id,
                e.engine,
                e.message_format,
                str(e.message_count),
                e.updated_at,
                e.session_key or "",
            ]
            for e in entries
        )
        titles = ["session", "engine", "format", "messages", "last change", "key"]
        print_table(
            titles if has_keys else titles[:-1],
            rows if has_keys else (row[:-1] for row in rows),
            numbers=(3,),
        )
    return OK


@command.command("savings", short_help="Show what the gateway saved, by session.")
@common_options
def savings(common: Common) -> int:
    """Show what the gateway saved in each session, by the provider's own counts.

    `wanted` is what the program would have sent, `sent` what went upstream, and `cache` the part of `sent`
    that the provider read from its cache. `cuts` counts compactions that the program did not have to make.
    """
    from sidecar.cli.target import settings_of
    from sidecar.gateway.savings import read, summed

    rows = summed(read(settings_of(common).state_dir))
    if common.json:
        print_json({"sessions": rows})
    elif not rows:
        console(stderr=True).print("No request has gone through the gateway yet.")
    else:
        print_table(
            ("session", "model", "requests", "wanted", "sent", "saved", "cache", "cuts"),
            (
                (
                    row.session,
                    row.model,
                    str(row.requests),
                    shown_tokens(row.wanted),
                    shown_tokens(row.sent),
                    f"{1 - row.sent / max(1, row.wanted):.0%}",
                    shown_tokens(row.cache_read),
                    str(row.compactions_avoided),
                )
                for row in rows
            ),
            numbers=(2, 3, 4, 5, 6, 7),
        )
    return OK


@command.command("show")
@click.argument("session_id")
@click.option(
    "--last", default=10, show_default=True, type=click.IntRange(0), help="Number of newest messages."
)
@namespace_option
@common_options
def show(common: Common, session_id: str, last: int, namespace: str) -> int:
    """Show a session's metadata and its newest messages."""

    async def ask(client: SidecarClient) -> tuple[GetSessionResult, list[StoredMessage]]:
        facts = await client.session(session_id)
        newest: deque[StoredMessage] = deque(maxlen=last)
        async for message in client.stored_messages(session_id):
            newest.append(message)
        return facts, list(newest)

    facts, newest = with_client(client_for(common, namespace=namespace), ask)
    if common.json:
        print_json({"session": facts, "messages": newest})
        return OK
    out = console()
    for name, value in (
        ("session", facts.session_id),
        ("engine", facts.engine),
        ("format", facts.message_format),
        ("messages", f"{facts.message_count} in {facts.turn_count} turns"),
        ("begun", facts.created_at),
        ("changed", facts.updated_at),
    ):
        out.print(f"{name:9} {value}")
    rows = [(m.turn_id, *_excerpt(m, facts.message_format), m.message_id) for m in newest]
    if rows:
        print_table(("turn", "role", "message", "id"), rows)
    return OK


@command.command("receipts")
@click.argument("session_id")
@namespace_option
@common_options
def receipts(common: Common, session_id: str, namespace: str) -> int:
    """List the newest compactions of a session and what each did."""

    async def ask(client: SidecarClient) -> list[Raw]:
        return await client.receipts(session_id)

    found = with_client(client_for(common, namespace=namespace), ask)
    if common.json:
        print_json({"receipts": found})
    elif found:
        print_table(COLUMNS, rows_of(found))
    else:
        console().print("No compaction of this session has left a receipt.")
    return OK


@command.command("export", short_help="Write the messages of a session.")
@click.argument("session_id")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="PATH", help="Write to a file (flo: a folder)."
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["lines", "flo"]),
    default="lines",
    show_default=True,
    help="lines: one message per line. flo: context.json (whole history) and context.terse.json (its tags).",
)
@namespace_option
@common_options
def export(common: Common, session_id: str, out: Path | None, shape: str, namespace: str) -> int:
    """Write the messages of a session as the host sent them, one JSON text per line.

    With --json, write one document with ids, turns and times. `sessions import` reads all of these back.
    """

    async def ask(client: SidecarClient) -> tuple[str, list[StoredMessage]]:
        facts = await client.session(session_id)
        return facts.message_format, [message async for message in client.stored_messages(session_id)]

    message_format, messages = with_client(client_for(common, namespace=namespace), ask)
    if shape == "flo":
        from sidecar.cli.flo_files import write_files

        files = write_files(out or Path(), session_id, message_format, messages)
        if common.json:
            print_json({"messages": len(messages), "files": list(map(str, files))})
        else:
            console(stderr=True).print(
                f"{len(messages)} messages written to {' and '.join(map(str, files))}."
            )
        return OK
    if common.json:
        data = _document(session_id, message_format, messages)
    else:
        from sidecar.messages.importers.transcript import one_line

        data = b"".join(one_line(message.body) + b"\n" for message in messages)
    if out is not None:
        write(out, data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return OK


@command.command("import", short_help="Store a transcript, an export or an archive.")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--session", "session_id", metavar="ID", help="Id of the session (default: as in the file).")
@namespace_option
@common_options
def import_session(common: Common, path: Path, session_id: str | None, namespace: str) -> int:
    """Store the output of `sessions export`, `db prune --archive` or `db recover`, or a transcript.

    PATH is a folder written with `--format flo`, an archive, an export, or a session file or message list in
    any format that `replay` reads; each conversation of a ChatGPT or claude.ai export becomes a session. Ids,
    turns and times are kept if the file has them. Messages that a session already has are not stored again.

    Text that the exporting store added, such as memory in a user message, is left out: archives, recovered
    lines and exports with `--json` or `--format flo` mark it.
    """
    from sidecar.cli.flo_files import Context, read_sessions, without_tag
    from sidecar.messages.dialects import dialect
    from sidecar.messages.marks import without_issued

    found = read_sessions(path)
    if session_id is not None and len(found) > 1:
        raise CommandFailed(f"{path.name} has {counted(len(found), 'session')}: --session can name only one")

    def stored_in(target: str, context: Context) -> int:
        own = dialect(context.message_format)
        bodies = [(without_issued(own, bytes(e.message), e.issued), e) for e in context.messages]
        messages = [(body, entry) for body, entry in bodies if body is not None]

        async def ingest(client: SidecarClient) -> int:
            stored = 0
            for start in range(0, len(messages), AT_ONCE):
                answers = await asyncio.gather(
                    *(
                        client.ingest(
                            target,
                            body,
                            message_id=entry.message_id,
                            turn_id=entry.turn_id,
                            timestamp=entry.timestamp,
                        )
                        for body, entry in messages[start : start + AT_ONCE]
                    )
                )
                stored += sum(answer.ingested for answer in answers)
            return stored

        client = client_for(common, engine="full", message_format=context.message_format, namespace=namespace)
        return with_client(client, ingest)

    documents: list[dict[str, object]] = []
    for context, terse in found:
        target = session_id or context.session_id
        stored, lacking = stored_in(target, context), without_tag(context, terse)
        documents.append({"sessionId": target, "imported": stored, "withoutTag": lacking})
        if common.json:
            continue
        out = console(stderr=True)
        out.print(f"Session {target}: stored {stored} of {counted(len(context.messages), 'message')}.")
        if lacking:
            summaries = counted(len(lacking), "summary", "summaries")
            out.print(f"Not stored: {summaries} without a message.")
    if common.json:
        print_json(documents[0] if len(documents) == 1 else {"sessions": documents})
    return OK


@command.command("delete")
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@namespace_option
@common_options
def delete(common: Common, session_id: str, yes: bool, namespace: str) -> int:
    """Erase a session for good."""
    if not yes:
        click.confirm(f"Erase the session {session_id} for good?", abort=True, err=True)

    async def ask(client: SidecarClient) -> bool:
        return await client.delete(session_id)

    deleted = with_client(client_for(common, namespace=namespace), ask)
    if common.json:
        print_json({"deleted": deleted})
    elif deleted:
        console().print(f"Erased the session {session_id}.")
    else:
        console(stderr=True).print(f"There is no session {session_id} in the namespace {namespace}.")
    return OK if deleted else FAILURE


def _document(session_id: str, message_format: str, messages: list[StoredMessage]) -> bytes:
    import msgspec

    document = {"sessionId": session_id, "messageFormat": message_format, "messages": messages}
    return msgspec.json.encode(document) + b"\n"


def _excerpt(message: StoredMessage, message_format: str) -> tuple[str, str]:
    from sidecar.messages.dialects import dialect
    from sidecar.tokens.message_cost import readable_text

    reading = dialect(message_format).read(message.body)
    text = " ".join(readable_text(reading).split())
    return reading.role, text if len(text) <= EXCERPT else text[: EXCERPT - 3] + "..."


COLUMNS = ("when", "why", "summarised", "in full", "tokens", "by a model", "owed", "pins")


class _Receipt(Struct, rename="camel"):
    at_ms: int = 0
    reason: str = ""
    summarised_messages: int = 0
    kept_messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    model_summaries: int = 0
    fallback_summaries: int = 0
    pins_kept: list[str] = []


def rows_of(receipts: Sequence[Raw]) -> list[tuple[str, ...]]:
    """One row per compaction, oldest first."""
    return [_row(json.decode(receipt, type=_Receipt)) for receipt in receipts]


def _row(receipt: _Receipt) -> tuple[str, ...]:
    return (
        format_rfc3339(receipt.at_ms),
        receipt.reason,
        str(receipt.summarised_messages),
        str(receipt.kept_messages),
        f"{receipt.tokens_before} to {receipt.tokens_after}",
        str(receipt.model_summaries),
        str(receipt.fallback_summaries),
        str(len(receipt.pins_kept)),
    )
