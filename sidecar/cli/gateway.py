"""`context-sidecar gateway`: engines for programs that only know a model's API."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct

from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.own_sidecar import sidecar_command
from sidecar.cli.target import settings_of
from sidecar.private_files import secret_in
from sidecar.secrecy import masked_text

if TYPE_CHECKING:
    from sidecar.gateway.server import Gateway, Upstreams

R = TypeVar("R")

LOOPBACK = ("127.0.0.1", "localhost", "::1")
KEY_FILE = Path("gateway") / "handles.key"
"""In the state directory: signs the handles that stand for compacted histories."""
UNITS = {"k": 1_000, "m": 1_000_000}


class Options(Struct, frozen=True):
    """What both commands take."""

    listen: str
    engine: str
    window: int | None
    compaction: str
    upstream_anthropic: str | None
    upstream_openai: str | None
    sidecar: str | None
    wait: float


def gateway_options(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the gateway's options, as its second argument."""

    @click.option(
        "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="Loopback address to listen on."
    )
    @click.option("--engine", default="lossless", show_default=True, metavar="ID", help="Context engine.")
    @click.option("--window", callback=_tokens, metavar="TOKENS", help="The model's window, such as 200k.")
    @click.option(
        "--compaction",
        type=click.Choice(["engine", "upstream"]),
        default="engine",
        show_default=True,
        help="Who answers when the program asks for compaction.",
    )
    @click.option(
        "--upstream-anthropic", metavar="URL", help="Where Messages API requests go, without a path."
    )
    @click.option("--upstream-openai", metavar="URL", help="Where OpenAI API requests go, without a path.")
    @click.option("--sidecar", metavar="COMMAND", help="Command that starts the sidecar.")
    @click.option(
        "--wait",
        type=click.FloatRange(0.1, 600),
        default=5,
        show_default=True,
        metavar="SECONDS",
        help="How long a request waits for the engine before it goes upstream as it came.",
    )
    @wraps(command)
    def with_options(common: Common, **given: object) -> R:
        names = Options.__struct_fields__
        own = Options(**{name: given.pop(name) for name in names})  # pyright: ignore[reportArgumentType]
        return command(common, own, **given)

    return with_options


def _tokens(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    number, unit = (value[:-1], UNITS[value[-1].lower()]) if value[-1:].lower() in UNITS else (value, 1)
    if not number.isdigit() or int(number) * unit < 1_000:
        raise click.BadParameter("a number of tokens from 1000 on, such as 32000 or 200k", context, parameter)
    return int(number) * unit


@click.command("gateway", short_help="Serve programs that only know a model's API.")
@common_options
@gateway_options
def command(common: Common, options: Options) -> int:
    """Serve the Messages, Responses and Chat Completions APIs on loopback; an engine chooses the context.

    Point a program at it with ANTHROPIC_BASE_URL=http://HOST:PORT or OPENAI_BASE_URL=http://HOST:PORT/v1.
    """
    from sidecar.gateway.programs import upstreams

    where = upstreams([], os.environ, options.upstream_anthropic, options.upstream_openai)
    return asyncio.run(_serve(common, options, where))


class _Told(logging.Handler):
    """Tells the user what the gateway warns about, a line each and without tracebacks."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a warning on."""
        kind = record.exc_info[0] if record.exc_info else None
        self._warn(record.getMessage() + (f" ({kind.__name__})" if kind is not None else ""))


def open_gateway(common: Common, options: Options, where: Upstreams, warn: Callable[[str], None]) -> Gateway:
    """A gateway that does not listen yet; `warn` is told what the user should know."""
    from sidecar.gateway.budget import Budgets
    from sidecar.gateway.engine import EngineLink
    from sidecar.gateway.programs import folder_of
    from sidecar.gateway.savings import SavingsFile
    from sidecar.gateway.server import Gateway

    for name in ("sidecar.gateway", "aiohttp"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [_Told(warn)], False
    command = shlex.split(options.sidecar) if options.sidecar else sidecar_command(common)
    link = EngineLink(command, options.engine, folder_of(), warn, common.state_dir, options.wait)
    state = settings_of(common).state_dir
    try:
        key = secret_in(state / KEY_FILE, 32)
    except OSError as problem:
        raise CommandFailed(f"The key in {state / KEY_FILE} cannot be used: {problem}.") from None
    return Gateway(
        link,
        Budgets(options.window),
        where,
        key,
        answers_compaction=options.compaction == "engine",
        savings=SavingsFile(state),
    )


async def listen(gateway: Gateway, address: str) -> int:
    """Listen at HOST:PORT; returns the port.

    Raises:
        CommandFailed: the address is not a loopback address, or is taken.
    """
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in LOOPBACK or not port.isdigit():
        raise CommandFailed(f"--listen takes a loopback address such as 127.0.0.1:8787, not {address!r}.")
    try:
        return await gateway.open(host.strip("[]"), int(port))
    except OSError as problem:
        raise CommandFailed(f"Cannot listen on {address}: {problem.strerror or problem}.") from None


async def _serve(common: Common, options: Options, where: Upstreams) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    gateway = open_gateway(common, options, where, say)
    port = await listen(gateway, options.listen)
    say(f"gateway on http://127.0.0.1:{port}, engine {options.engine}")
    try:
        await stopped.wait()
    finally:
        await gateway.close()
    return 0


def say(text: str) -> None:
    """Tell the user something on standard error, without secrets and what a terminal would obey."""
    shown = "".join(each if each.isprintable() else " " for each in masked_text(text))
    print(f"context-sidecar: {shown}", file=sys.stderr)
