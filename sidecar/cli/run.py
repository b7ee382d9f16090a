"""`context-sidecar run`: a program with an engine behind it, for as long as the program runs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from sidecar.cli.failures import CommandFailed
from sidecar.cli.gateway import Options, gateway_options, listen, open_gateway, say
from sidecar.cli.options import Common, common_options
from sidecar.cli.own_sidecar import own_command
from sidecar.cli.target import settings_of


@click.command(
    "run",
    short_help="Start Claude Code, Codex or another program behind the gateway.",
    context_settings={"ignore_unknown_options": True},
)
@common_options
@gateway_options
@click.option("--no-mcp", is_flag=True, help="Do not offer the recall tools to the program.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(common: Common, options: Options, no_mcp: bool, program: tuple[str, ...]) -> int:
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


async def _run(common: Common, options: Options, program: Sequence[str], recall: Sequence[str] | None) -> int:
    from sidecar.gateway.programs import CannotRun, launch, upstreams

    try:
        where = upstreams(program, os.environ, options.upstream_anthropic, options.upstream_openai)
    except CannotRun as reason:
        raise CommandFailed(str(reason)) from None
    warnings: dict[str, None] = {}
    gateway = open_gateway(common, options, where, lambda text: warnings.update({text: None}))
    port = await listen(gateway, options.listen)
    try:
        try:
            start = launch(program, os.environ, port, recall)
        except CannotRun as reason:
            raise CommandFailed(str(reason)) from None
        window = f"window {options.window}" if options.window else "window by model"
        say(
            f"engine {options.engine}, {window}, gateway on 127.0.0.1:{port}, "
            f"sessions in {settings_of(common).state_dir}"
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
            say(text)


def _pass_on(child: asyncio.subprocess.Process, number: int) -> None:
    if child.returncode is None:
        child.send_signal(number)
