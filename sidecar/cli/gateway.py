"""`context-sidecar gateway` and `context-sidecar run`: engines for programs that only know a model's API."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct

from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.own_sidecar import own_command, sidecar_command
from sidecar.cli.target import settings_of

if TYPE_CHECKING:
    from sidecar.gateway.server import Gateway, Upstreams

R = TypeVar("R")

LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
def gateway_command(common: Common, options: Options) -> int:
    """Serve the Messages, Responses and Chat Completions APIs on loopback; an engine chooses the context.

    Point a program at it with ANTHROPIC_BASE_URL=http://HOST:PORT or OPENAI_BASE_URL=http://HOST:PORT/v1.
    """
    from sidecar.gateway.programs import upstreams

    where = upstreams([], os.environ, options.upstream_anthropic, options.upstream_openai)
    return asyncio.run(_serve(common, options, where))


@click.command(
    "run",
    short_help="Start Claude Code, Codex or another program behind the gateway.",
    context_settings={"ignore_unknown_options": True},
)
@common_options
@gateway_options
@click.option("--no-mcp", is_flag=True, help="Do not offer the recall tools to the program.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(common: Common, options: Options, no_mcp: bool, program: tuple[str, ...]) -> int:
    """Start PROGRAM so that its requests go through the gateway, and end with it.

    For example: `context-sidecar run -- claude`, or `context-sidecar run --window 64k -- codex`.
    """
    recall = None if no_mcp else _recall(common, options)
    return asyncio.run(_run(common, options, list(program), recall))


def _recall(common: Common, options: Options) -> list[str] | None:
    """The command of the recall tools, `None` where they cannot be offered."""
    if find_spec("mcp") is None or options.sidecar is not None:
        return None
    command = [*own_command("mcp"), "--engine", options.engine, "--folder", str(Path.cwd())]
    if common.config is not None:
        command += ["--config", str(common.config.resolve())]
    if common.state_dir is not None:
        command += ["--state-dir", str(common.state_dir.resolve())]
    return command


def _open(common: Common, options: Options, where: Upstreams, warn: Callable[[str], None]) -> Gateway:
    try:
        from sidecar.gateway.server import Gateway
    except ModuleNotFoundError as problem:
        if problem.name not in ("aiohttp", "multidict"):
            raise
        raise CommandFailed("The gateway needs the package aiohttp. Install the extra `http`.") from None
    from sidecar.gateway.budget import Budgets
    from sidecar.gateway.engine import EngineLink
    from sidecar.gateway.programs import folder_of
    from sidecar.gateway.savings import SavingsFile

    command = shlex.split(options.sidecar) if options.sidecar else sidecar_command(common)
    link = EngineLink(command, options.engine, folder_of(), warn, common.state_dir)
    return Gateway(
        link,
        Budgets(options.window),
        where,
        answers_compaction=options.compaction == "engine",
        savings=SavingsFile(settings_of(common).state_dir),
    )


async def _listen(gateway: Gateway, listen: str) -> int:
    host, _, port = listen.rpartition(":")
    if host.strip("[]") not in LOOPBACK or not port.isdigit():
        raise CommandFailed(f"--listen takes a loopback address such as 127.0.0.1:8787, not {listen!r}.")
    try:
        return await gateway.open(host.strip("[]"), int(port))
    except OSError as problem:
        raise CommandFailed(f"Cannot listen on {listen}: {problem.strerror or problem}.") from None


async def _serve(common: Common, options: Options, where: Upstreams) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    gateway = _open(common, options, where, _say)
    port = await _listen(gateway, options.listen)
    _say(f"gateway on http://127.0.0.1:{port}, engine {options.engine}")
    try:
        await stopped.wait()
    finally:
        await gateway.close()
    return 0


async def _run(common: Common, options: Options, program: Sequence[str], recall: Sequence[str] | None) -> int:
    from sidecar.gateway.programs import CannotRun, launch, upstreams

    where = upstreams(program, os.environ, options.upstream_anthropic, options.upstream_openai)
    warnings: dict[str, None] = {}
    gateway = _open(common, options, where, lambda text: warnings.update({text: None}))
    port = await _listen(gateway, options.listen)
    try:
        try:
            start = launch(program, os.environ, port, recall)
        except CannotRun as reason:
            raise CommandFailed(str(reason)) from None
        window = f"window {options.window}" if options.window else "window by model"
        print(
            f"context-sidecar: engine {options.engine}, {window}, gateway on 127.0.0.1:{port}",
            file=sys.stderr,
        )
        try:
            child = await asyncio.create_subprocess_exec(*start.command, env=start.environment)
        except OSError as problem:
            raise CommandFailed(f"Cannot start {program[0]}: {problem.strerror or problem}.") from None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, _pass_on, child, number)
        # The terminal sends Ctrl-C to the program as well, which decides what it means.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
        code = await child.wait()
        return code if code >= 0 else 128 - code
    finally:
        await gateway.close()
        # Until now the terminal was the program's.
        for text in warnings:
            _say(text)


def _pass_on(child: asyncio.subprocess.Process, number: int) -> None:
    if child.returncode is None:
        child.send_signal(number)


def _say(text: str) -> None:
    print(f"context-sidecar: {text}", file=sys.stderr)
