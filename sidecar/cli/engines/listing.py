"""`context-sidecar engines list` and `show`: what engines there are."""

from __future__ import annotations

from typing import Any

import click

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.engines.known import engine_named, settings_of, sources_of
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json, print_table
from sidecar.client.sidecar_client import SidecarClient
from sidecar.engine.sources import Found
from sidecar.protocol.engine import EngineListing, ListEngineResult

BY_HOST = "default"
"""Selected where nothing is configured, unless the host compacts by its own means."""


@click.command("list")
@common_options
def list_engines(common: Common) -> int:
    """List every engine that is installed or linked, and whether it can be selected."""
    engines, origins = _engines(common)
    if common.json:
        print_json(ListEngineResult(engines=engines))
        return 0
    print_table(
        ("engine", "name", "version", "compaction", "from", "state"),
        (
            (
                engine.id,
                engine.name,
                engine.version,
                "its own" if engine.owns_compaction else "the host's",
                origins[engine.id].described() if engine.id in origins else "",
                _state(engine),
            )
            for engine in engines
        ),
    )
    return 0


@click.command("show")
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
    """What a sidecar says of its engines, with where each comes from.

    It is asked with a built-in engine, so that a broken one that is selected can be seen.
    """
    import msgspec

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
