"""`context-sidecar inspect`: show in a browser what the model saw."""

from __future__ import annotations

import asyncio
import logging
import signal
import webbrowser
from pathlib import Path

import click

from sidecar.cli.failures import CommandFailed
from sidecar.cli.lab.recording import Recording, read_recording
from sidecar.cli.options import Common, Prices, common_options, namespace_option, price_option, token_budget
from sidecar.cli.own_sidecar import client_for
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.importers.transcript import TranscriptError, nothing_in
from sidecar.protocol.base import MessageFormat


@click.command("inspect", short_help="Show in a browser what the model saw, why, and what it cost.")
@click.argument("transcript", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--engine", default="", metavar="ID", help="Engine to show (default: as configured).")
@click.option(
    "--budget", type=token_budget, default="128k", show_default=True, metavar="TOKENS", help="Token budget."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1 (default: any free one)."
)
@click.option("--no-open", is_flag=True, help="Print the address, but do not open a browser.")
@price_option
@namespace_option
@common_options
def command(
    common: Common,
    transcript: Path | None,
    engine: str,
    budget: int,
    port: int,
    no_open: bool,
    prices: Prices,
    namespace: str,
) -> int:
    """Show stored sessions, or a TRANSCRIPT, turn by turn: what filled the window, what was left out and why,
    what it cost, and how another engine or budget would compare.

    The page is served on this machine only, at an address that nobody else knows. It follows stored sessions
    while agents run, and does not change them.
    """
    recording = None
    if transcript is not None:
        try:
            recording = read_recording(transcript, None)
        except TranscriptError as error:
            raise CommandFailed(f"{transcript.name}: {error}") from None
        if not recording.steps:
            raise CommandFailed(f"{transcript.name}: {nothing_in(recording.skipped)}")
    return asyncio.run(_serve(common, recording, engine, budget, port, prices, namespace, opens=not no_open))


async def _serve(
    common: Common,
    recording: Recording | None,
    engine: str,
    budget: int,
    port: int,
    prices: Prices,
    namespace: str,
    *,
    opens: bool,
) -> int:
    from sidecar.cli.inspector.server import Inspector

    def player(engine: str | None, message_format: MessageFormat) -> SidecarClient:
        memory = {"store": {"kind": "memory"}}
        return client_for(
            common, engine=engine, message_format=message_format, namespace="inspect", config=memory
        )

    # Do not log other programs' requests to the terminal.
    logging.getLogger("aiohttp").addHandler(logging.NullHandler())
    logging.getLogger("aiohttp").propagate = False
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with client_for(common, engine="full", namespace=namespace) as store:
        inspector = Inspector(store, recording, player, engine, budget, prices)
        try:
            address = await inspector.open(port)
        except OSError as problem:
            raise CommandFailed(
                f"Cannot listen on 127.0.0.1:{port}: {problem.strerror or problem}."
            ) from None
        print(f"{address}\nPress Ctrl-C to end.", flush=True)
        if opens:
            webbrowser.open(address)
        try:
            await stopped.wait()
        finally:
            await inspector.close()
    return 0
