"""`context-sidecar sessions`: looking at stored sessions, exporting and deleting them."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

import click
from msgspec import Raw

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.options import Common, common_options, namespace_option
from sidecar.cli.printing import console, print_json, print_table
from sidecar.client.answers import StoredMessage
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.base import MessageFormat
from sidecar.protocol.session import GetSessionResult, SessionEntry

AT_ONCE = 100
"""Messages that are on their way at once while a session is imported."""
EXCERPT = 100
"""Characters of a message that `show` prints."""


@click.group("sessions")
def command() -> None:
    """Look at stored sessions, export, import or delete them."""


@command.command("list")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1), help="Most sessions to list."
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
        print_table(
            ("session", "engine", "format", "messages", "last change"),
            ((e.session_id, e.engine, e.message_format, str(e.message_count), e.updated_at) for e in entries),
            numbers=(3,),
        )
    return OK


@command.command("show")
@click.argument("session_id")
@click.option(
    "--last", default=10, show_default=True, type=click.IntRange(0), help="Newest messages to show."
)
@namespace_option
@common_options
def show(common: Common, session_id: str, last: int, namespace: str) -> int:
    """Show the facts of a session and its newest messages."""

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
    """List what the newest compactions of a session did."""
    from sidecar.cli.receipt_rows import COLUMNS, rows_of

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


@command.command("export")
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
    help="lines: one message a line. flo: context.json (whole history) and context.terse.json (its tags).",
)
@namespace_option
@common_options
def export(common: Common, session_id: str, out: Path | None, shape: str, namespace: str) -> int:
    """Write the messages of a session, one JSON text a line, as the host sent them.

    With --json one document that also has ids, turns and times. `sessions import` reads --format flo back.
    """

    async def ask(client: SidecarClient) -> tuple[MessageFormat, list[StoredMessage]]:
        facts = await client.session(session_id)
        return facts.message_format, [message async for message in client.stored_messages(session_id)]

    message_format, messages = with_client(client_for(common, namespace=namespace), ask)
    if shape == "flo":
        from sidecar.cli.flo_files import write_files

        files = write_files(out or Path(), session_id, message_format, messages)
        if common.json:
            print_json({"messages": len(messages), "files": list(map(str, files))})
        else:
            console(stderr=True).print(f"{len(messages)} messages are in {' and '.join(map(str, files))}.")
        return OK
    if common.json:
        data = _document(session_id, message_format, messages)
    else:
        from sidecar.messages.importers.rows import one_line

        data = b"".join(one_line(message.body) + b"\n" for message in messages)
    if out is not None:
        out.write_bytes(data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return OK


@command.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--session", "session_id", metavar="ID", help="Name of the session (default: as in the file).")
@namespace_option
@common_options
def import_session(common: Common, path: Path, session_id: str | None, namespace: str) -> int:
    """Store what `sessions export --format flo` wrote: a folder, or its context.json.

    Ids, turns and times stay. What the session has already is not stored again.
    """
    from sidecar.cli.flo_files import read_files, without_tag

    context, terse = read_files(path)
    target = session_id or context.session_id

    async def tell(client: SidecarClient) -> int:
        stored = 0
        for start in range(0, len(context.messages), AT_ONCE):
            answers = await asyncio.gather(
                *(
                    client.ingest(
                        target,
                        bytes(entry.message),
                        message_id=entry.message_id,
                        turn_id=entry.turn_id,
                        timestamp=entry.timestamp,
                    )
                    for entry in context.messages[start : start + AT_ONCE]
                )
            )
            stored += sum(answer.ingested for answer in answers)
        return stored

    message_format = context.message_format
    client = client_for(common, engine="full", message_format=message_format, namespace=namespace)
    stored, lacking = with_client(client, tell), without_tag(context, terse)
    if common.json:
        print_json({"sessionId": target, "imported": stored, "withoutTag": lacking})
        return OK
    console(stderr=True).print(
        f"{stored} of {len(context.messages)} messages are new in the session {target}."
    )
    if lacking:
        console(stderr=True).print(f"{len(lacking)} summaries stand in no message; they are not stored.")
    return OK


@command.command("delete")
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
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
        console().print(f"The session {session_id} is erased.")
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
