"""`context-sidecar mcp`: serve the recall tools to any MCP client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from sidecar.cli.options import Common, common_options
from sidecar.cli.own_sidecar import client_for


@click.command("mcp", short_help="Serve the recall tools over MCP, on standard input and output.")
@common_options
@click.option("--session", metavar="ID", help="Session to search (default: the newest of the folder).")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    help="Folder whose sessions to search (default: the current one).",
)
@click.option(
    "--namespace", default="gateway", show_default=True, metavar="NAME", help="Namespace of the host."
)
@click.option(
    "--engine", default="lossless", show_default=True, metavar="ID", help="Engine whose tools to serve."
)
def command(common: Common, session: str | None, folder: Path, namespace: str, engine: str) -> int:
    """Let a program search and reopen earlier messages, in this session and in others of the folder.

    Add it to any MCP client as a command. `context-sidecar run` adds it to Claude Code and Codex.
    """
    from sidecar.gateway.mcp_server import RecallServer
    from sidecar.gateway.programs import folder_of

    where = folder_of(folder)

    async def serve() -> None:
        async with client_for(common, engine=engine, namespace=namespace) as client:
            await RecallServer(client, session, lambda key: key.partition(":")[2] == where).serve()

    asyncio.run(serve())
    return 0
