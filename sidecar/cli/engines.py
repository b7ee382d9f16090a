"""`context-sidecar engines`: list, select, create, link, install and check engines."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from sidecar.cli.conformance import Reporting, reporting_options
from sidecar.cli.engine_template import new
from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, InOrder, common_options
from sidecar.cli.output import console, print_json, print_table
from sidecar.cli.own_sidecar import client_for, sidecar_command, with_client
from sidecar.cli.target import settings_of
from sidecar.client.sidecar_client import SidecarClient
from sidecar.engine.declared import NothingDeclared, declared_engines
from sidecar.engine.sources import (
    BUILT_IN,
    EngineSources,
    Found,
    LinksUnreadable,
    add_link,
    read_links,
    remove_link,
)
from sidecar.import_path import absolute_path
from sidecar.private_files import write
from sidecar.protocol.engine import EngineListing, ListEngineResult
from sidecar.server.configuration.resolve import config_file
from sidecar.server.configuration.settings import Settings

LEGACY = "legacy"
BY_HOST = "default"
"""The engine if none is configured, unless the host compacts its history itself."""


WHAT = {
    "legacy": "stores nothing: the host keeps the history and compacts it",
    "full": "sends everything, and leaves out the oldest turns when the budget forces it",
    "default": "sends recent messages in full, and one summary of older ones",
    "sliding-window": "sends the newest messages that fit, and drops older ones in blocks",
    "terse": "sends the last turns in full, and a log of one-line notes by the model for older ones",
    "lossless": "sends recent messages and a tree of summaries; every message can be looked up again",
    "recall": "sends what full sends, without pruning: old tool results stay whole",
}
"""One line about each built-in engine."""


@click.group("engines", cls=InOrder)
def command() -> None:
    """List, select, create, link, install and check engines."""


@command.command("list", short_help="List every engine, and whether it can be selected.")
@common_options
def list_engines(common: Common) -> int:
    """List every engine that is installed or linked, and whether it can be selected."""
    engines, origins = _engines(common)
    if common.json:
        print_json(ListEngineResult(engines=engines))
        return 0
    print_table(
        ("engine", "what it does", "version", "compaction", "from", "state"),
        (
            (
                engine.id,
                WHAT.get(engine.id, engine.name),
                engine.version,
                "its own" if engine.owns_compaction else "the host's",
                origins[engine.id].described() if engine.id in origins else "",
                _state(engine),
            )
            for engine in engines
        ),
    )
    return 0


@command.command("show", short_help="Show one engine: where it comes from, what it does, its settings.")
@click.argument("name")
@common_options
def show(common: Common, name: str) -> int:
    """Show the engine NAME: where it comes from, what it does, and its settings."""
    settings = settings_of(common)
    found = engine_named(settings, name)
    engines, _ = _engines(common)
    engine = next(listed for listed in engines if listed.id == name)
    isolated = settings.entry(name).isolation or ("inline" if found.is_built_in else "process")
    shown: dict[str, Any] = {
        "id": name,
        "name": engine.name,
        "version": engine.version,
        "from": found.described(),
        "code": found.target,
        "runs": "inside the sidecar's process" if isolated == "inline" else "in a process of its own",
        "implements": engine.implements,
        "ownsCompaction": engine.owns_compaction,
        "hostRequirements": engine.host_requirements or [],
        "selected": engine.active,
        "available": engine.available,
        "reason": engine.reason,
        "settings": dict(settings.entry(name).config),
    }
    if common.json:
        print_json(shown)
        return 0
    out = console()
    for key, value in shown.items():
        if value not in (None, [], {}):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore
            out.print(f"{key:17} {text}", soft_wrap=True)
    return 0


def _engines(common: Common) -> tuple[list[EngineListing], dict[str, Found]]:
    """The engines that a sidecar lists, and the origin of each.

    The sidecar starts with a built-in engine, so that it can list a selected engine that is broken.
    """
    settings = settings_of(common)
    selected = settings.engine or BY_HOST

    async def ask(client: SidecarClient) -> list[EngineListing]:
        return await client.engines()

    listed = with_client(client_for(common, engine=BY_HOST), ask)
    engines = [msgspec.structs.replace(engine, active=engine.id == selected) for engine in listed]
    return engines, {found.id: found for found in sources_of(settings).all()}


def _state(engine: EngineListing) -> str:
    if not engine.available:
        return engine.reason or "not available"
    return "selected" if engine.active else "available"


@command.command("use", short_help="Select an engine in the configuration file.")
@click.argument("name")
@common_options
def use(common: Common, name: str) -> int:
    """Select the engine NAME for hosts that do not choose one."""
    found = engine_named(settings_of(common), name)
    if found.problem:
        raise CommandFailed(found.problem)
    write_slot(common, name)
    click.echo(f"{name} is selected ({file_of(common)}); `context-sidecar doctor` tries it out")
    return 0


command.add_command(new)


@command.command("link", short_help="Use the engines of a folder in place, without copying.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@common_options
def link(common: Common, folder: Path) -> int:
    """Use the engines of FOLDER in place; changes take effect when a sidecar starts."""
    folder = folder.resolve()
    try:
        engines = declared_engines(folder)
        taken = sorted(set(engines) & set(BUILT_IN))
        if taken:
            raise CommandFailed(f"{', '.join(taken)}: a built-in engine has this id; choose another one")
        add_link(links_of(settings_of(common)), folder)
    except (NothingDeclared, LinksUnreadable) as error:
        raise CommandFailed(str(error)) from None
    names = ", ".join(engines)
    click.echo(
        f"linked {names} from {folder}; `context-sidecar engines use {next(iter(engines))}` selects it"
    )
    return 0


@command.command("unlink", short_help="Stop using the engines of a folder.")
@click.argument("name", metavar="FOLDER|ENGINE")
@common_options
def unlink(common: Common, name: str) -> int:
    """Stop using the engines of a linked FOLDER, or of the folder that contains ENGINE."""
    settings = settings_of(common)
    found = [one for one in sources_of(settings).all() if one.origin == "linked"]
    folder = next((one.source for one in found if one.id == name), str(Path(name).resolve()))
    gone = [one.id for one in found if one.source == folder]
    try:
        if not remove_link(links_of(settings), folder):
            linked = ", ".join(read_links(links_of(settings))) or "none"
            raise CommandFailed(f"{name} is not linked; linked folders: {linked}")
    except LinksUnreadable as error:
        raise CommandFailed(str(error)) from None
    click.echo(f"unlinked {', '.join(gone) or folder}")
    reset_slot(common, gone)
    return 0


@command.command(
    "install",
    short_help="Install a package with engines into the sidecar's environment.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("package")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@common_options
def install(common: Common, package: str, options: tuple[str, ...]) -> int:
    """Install PACKAGE, given by name or folder; OPTIONS are passed to the installer."""
    del common
    before = _installed()
    _run([*installer("install"), *options, package])
    now = _installed()
    new = sorted(set(now) - set(before))
    if not new:
        known = sorted(engine for engine, source in now.items() if source.split(" ")[0] == package)
        if not known:
            raise CommandFailed(f"{package} is installed, but does not register a new engine")
        new = known
    click.echo(f"installed {', '.join(f'{name} ({now[name]})' for name in new)}")
    click.echo(f"`context-sidecar engines use {new[0]}` selects it, `engines check {new[0]}` checks it")
    return 0


@command.command("uninstall", short_help="Uninstall a package with engines.")
@click.argument("name", metavar="PACKAGE|ENGINE")
@common_options
def uninstall(common: Common, name: str) -> int:
    """Uninstall PACKAGE, or the package that contains ENGINE, from the sidecar's environment."""
    before = _installed()
    package = before[name].rpartition(" ")[0] if name in before else name
    if _same(package, "context-sidecar"):
        raise CommandFailed(f"{name} is part of the sidecar and cannot be uninstalled")
    command = installer("uninstall")
    _run([*command, package])
    gone = sorted(set(before) - set(_installed()))
    click.echo(f"removed {package}" + (f" with {', '.join(gone)}" if gone else ""))
    reset_slot(common, gone)
    return 0


@command.command("check", short_help="Run the conformance checks on an engine.")
@reporting_options
@click.argument("name")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Configuration file (default: the usual one).",
)
def check(reporting: Reporting, name: str, config_file: str | None) -> int:
    """Run the conformance checks on the engine NAME, in a separate sidecar with a temporary store."""
    from sidecar.conformance.engine import ENGINE_SUITE, check_engine, configured_engine

    if reporting.list_only:
        return reporting.list_checks(ENGINE_SUITE)
    common = Common(Path(config_file) if config_file else None, None, reporting.json)
    engine_named(settings_of(common), name)
    subject = configured_engine(name, sidecar_command(common))
    report = asyncio.run(check_engine(subject, patterns=reporting.patterns, on_result=reporting.print_result))
    return reporting.finish(report)


def sources_of(settings: Settings) -> EngineSources:
    """The places where engines are found."""
    return EngineSources(links=settings.links_file, paths=settings.load_paths, python=settings.engines_python)


def engine_named(settings: Settings, name: str) -> Found:
    """The engine with this id.

    Raises:
        CommandFailed: there is no such engine.
    """
    found = sources_of(settings).named(name)
    if found is None:
        names = ", ".join(known.id for known in sources_of(settings).all())
        raise CommandFailed(f"there is no engine {name!r}; known engines: {names}")
    return found


def links_of(settings: Settings) -> Path:
    """The file that lists the linked folders."""
    assert settings.links_file is not None
    return settings.links_file


def file_of(common: Common) -> Path:
    """The configuration file, whether or not it exists."""
    return config_file(common.config, os.environ)


def write_slot(common: Common, name: str) -> None:
    """Select the engine in the configuration file.

    Raises:
        CommandFailed: the file must be edited by hand.
    """
    try:
        select(file_of(common), name)
    except FileNotChanged as error:
        raise CommandFailed(str(error)) from None


def reset_slot(common: Common, gone: Collection[str]) -> None:
    """If the selected engine is one of the removed ones, select `legacy` and say so."""
    selected = settings_of(common).engine
    if selected in gone:
        write_slot(common, LEGACY)
        click.echo(f"{selected} was selected; {LEGACY} is now selected instead")


_HEADER = re.compile(r"^\s*\[")
_SLOTS = re.compile(r"^\s*\[\s*plugins\s*\.\s*slots\s*\]\s*(#.*)?$")
_KEY = re.compile(r"^(\s*)contextEngine\s*=.*$")


class FileNotChanged(Exception):
    """Raised if the file must be edited by hand; the text says how."""


def select(file: Path, engine_id: str) -> None:
    """Set `plugins.slots.contextEngine` in the file, which is created if necessary.

    Raises:
        FileNotChanged: the file is not TOML, or has a structure that cannot be edited automatically.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    line = f"contextEngine = {msgspec.json.encode(engine_id).decode()}"
    by_hand = f"edit {file} yourself:\n\n[plugins.slots]\n{line}"
    try:
        before: dict[str, Any] = tomllib.loads(text)
        changed = _changed(text, line)
        after: dict[str, Any] = tomllib.loads(changed)
    except ValueError as error:
        raise FileNotChanged(f"the file cannot be changed ({error}); {by_hand}") from None
    if after != _expected(before, engine_id):
        raise FileNotChanged(f"the file defines plugins.slots in an unusual place; {by_hand}")
    write(file, changed.encode())


def _changed(text: str, line: str) -> str:
    lines = text.split("\n")
    start = next((i for i, one in enumerate(lines) if _SLOTS.match(one)), None)
    if start is None:
        return f"{text.rstrip()}\n\n[plugins.slots]\n{line}\n".lstrip()
    end = next((i for i in range(start + 1, len(lines)) if _HEADER.match(lines[i])), len(lines))
    for i in range(start + 1, end):
        if _KEY.match(lines[i]):
            lines[i] = line
            break
    else:
        lines.insert(start + 1, line)
    return "\n".join(lines)


def _expected(before: dict[str, Any], engine_id: str) -> dict[str, Any]:
    plugins = cast("dict[str, Any]", before.get("plugins", {}))
    slots = cast("dict[str, Any]", plugins.get("slots", {}))
    return {**before, "plugins": {**plugins, "slots": {**slots, "contextEngine": engine_id}}}


_LIST = """
import json
from sidecar.engine.sources import installed
print(json.dumps([[found.id, found.source] for found in installed()]))
"""


def installer(task: str) -> list[str]:
    """The command that installs into, or uninstalls from, the environment of this process.

    Raises:
        CommandFailed: no installer is available.
    """
    pipx = shutil.which("pipx")
    if pipx and Path(sys.prefix).parent.name == "venvs" and "pipx" in Path(sys.prefix).parts:
        verb = "inject" if task == "install" else "uninject"
        return [pipx, verb, Path(sys.prefix).name]
    if find_spec("pip") is not None:
        quiet = ["--disable-pip-version-check", *(["--yes"] if task == "uninstall" else [])]
        return [sys.executable, "-P", "-m", "pip", task, *quiet]
    if uv := shutil.which("uv"):
        return [uv, "pip", task, "--python", sys.executable]
    raise CommandFailed(
        f"neither pip nor uv is available to {task} packages in {sys.prefix}; {task} the package yourself"
    )


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, **absolute_path(os.environ)}
    done = subprocess.run(command, stdout=sys.stderr, check=False, env=environment)
    if done.returncode:
        raise CommandFailed(f"`{' '.join(command)}` failed with exit code {done.returncode}")


def _installed() -> dict[str, str]:
    """Installed engine ids and their packages, as a new process finds them."""
    command = [sys.executable, "-P", "-c", _LIST]
    environment = {**os.environ, **absolute_path(os.environ)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout))


def _same(one: str, other: str) -> bool:
    return one.lower().replace("_", "-") == other
