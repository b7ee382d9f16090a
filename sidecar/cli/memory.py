"""`context-sidecar memory`: show what was injected into a session and why; list and forget facts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import click

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options, namespace_option
from sidecar.cli.output import console, print_json, print_table
from sidecar.cli.target import Target, store_failures, target_of
from sidecar.store.stored import SessionRef

if TYPE_CHECKING:
    from sidecar.memory.events import InjectionEvent
    from sidecar.memory.sources.facts import Fact
    from sidecar.store.postgres.store import PostgresStore
    from sidecar.store.sqlite.memory import MemoryStore
    from sidecar.store.sqlite.store import SQLiteStore

    Store = MemoryStore | SQLiteStore | PostgresStore

T = TypeVar("T")

PAUSE_S = 0.3
"""Polling interval of `watch`, in seconds."""
EXCERPT = 60
"""Maximum length of a fragment's text, in characters."""
AGENT = "default"


@click.group("memory")
def command() -> None:
    """Show what was injected into a session and why; list or forget facts."""


@command.command("show", short_help="Show what was injected into a session, and why.")
@click.argument("session_id")
@click.option(
    "--last", default=5, show_default=True, type=click.IntRange(1), help="Number of newest compilations."
)
@namespace_option
@common_options
def show(common: Common, session_id: str, last: int, namespace: str) -> int:
    """Show the newest compilations of a session: what was included, what was not, and why."""

    async def ask(store: Store) -> list[InjectionEvent]:
        found = await _events(store, namespace, session_id)
        if not found and await store.session(SessionRef(namespace, session_id)) is None:
            raise CommandFailed(f"there is no session {session_id!r} in the namespace {namespace!r}")
        return found

    found = _with_store(common, ask)[-last:]
    if common.json:
        print_json(found)
    elif not found:
        console(stderr=True).print(f"Nothing was injected into the session {session_id} of {namespace}.")
    else:
        for event in found:
            _print(event)
    return OK


@command.command("watch", short_help="Show each compilation of a session as it happens.")
@click.argument("session_id")
@click.option("--events", "most", type=click.IntRange(1), help="Stop after this many compilations.")
@namespace_option
@common_options
def watch(common: Common, session_id: str, most: int | None, namespace: str) -> int:
    """Show each compilation of a session as it happens, until you press Ctrl-C."""

    async def follow(store: Store) -> None:
        known = await _events(store, namespace, session_id)
        left = most
        console(stderr=True).print(f"Watching {session_id} of {namespace}.")
        while left is None or left > 0:
            found = await _events(store, namespace, session_id)
            new = [event for event in found if event not in known]
            known = found
            for event in new[:left]:
                if common.json:
                    print_json(event)
                else:
                    _print(event)
            left = None if left is None else left - len(new)
            await asyncio.sleep(PAUSE_S)

    with suppress(KeyboardInterrupt):
        _with_store(common, follow)
    return OK


@command.command("facts", short_help="List standing statements of users.")
@click.option("--agent", default=AGENT, show_default=True, metavar="ID", help="Agent whose facts to list.")
@namespace_option
@common_options
def list_facts(common: Common, agent: str, namespace: str) -> int:
    """List standing statements of users, with the message that made each."""

    async def ask(store: Store) -> list[Fact]:
        from sidecar.memory.sources.agent_remarks import AgentRemarks
        from sidecar.memory.sources.facts import BUFFER, facts
        from sidecar.store import open_buffer

        remarks = AgentRemarks(store, namespace, agent, roles=("user",))
        return await facts(remarks, open_buffer(store, namespace, BUFFER), agent)

    found = _with_store(common, ask)
    if common.json:
        print_json([{**fact._asdict(), "kind": fact.kind} for fact in found])
    elif not found:
        console(stderr=True).print(f"There are no facts for the agent {agent} in the namespace {namespace}.")
    else:
        rows = ((f.fact_id, f.kind, _cut(f.text, 80), f.session_id, f.turn_id) for f in found)
        print_table(("fact", "kind", "said", "session", "turn"), rows)
    return OK


@command.command("forget")
@click.argument("fact_id")
@click.option("--undo", is_flag=True, help="Remember it again.")
@click.option("--agent", default=AGENT, show_default=True, metavar="ID", help="Agent whose fact it is.")
@namespace_option
@common_options
def forget_fact(common: Common, fact_id: str, undo: bool, agent: str, namespace: str) -> int:
    """Never offer a fact again. The message that states it stays unchanged."""

    async def change(store: Store) -> bool:
        from sidecar.memory.sources.facts import BUFFER, forget, remember
        from sidecar.store import open_buffer

        forgotten = open_buffer(store, namespace, BUFFER)
        if undo:
            known = await forgotten.has_injected_id(agent, fact_id)
            await remember(forgotten, agent, fact_id)
            return known
        return await forget(forgotten, agent, fact_id)

    changed = _with_store(common, change)
    if common.json:
        print_json({"changed": changed})
    elif changed:
        console().print(f"The fact {fact_id} is {'remembered again' if undo else 'forgotten'}.")
    else:
        state = "was not forgotten" if undo else "was already forgotten"
        console(stderr=True).print(f"The fact {fact_id} of {agent} {state}.")
    return OK if changed else FAILURE


def _with_store(common: Common, work: Callable[[Store], Awaitable[T]]) -> T:
    target = target_of(common)

    async def run() -> T:
        async with _opened(target) as store:
            return await work(store)

    with store_failures():
        return asyncio.run(run())


@asynccontextmanager
async def _opened(target: Target) -> AsyncGenerator[Store]:
    from sidecar.server.connection import searched
    from sidecar.store import open_store

    kind = "sqlite" if target.path is not None else "postgres"
    store = open_store(
        kind, target.path, url=target.url, extract=lambda session, body: searched(store, session, body)
    )
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _events(store: Store, namespace: str, session_id: str) -> list[InjectionEvent]:
    from sidecar.memory.events import STATE, events

    return events(await store.state(SessionRef(namespace, session_id), STATE))


def _print(event: InjectionEvent) -> None:
    from sidecar.protocol.times import format_rfc3339

    out = console()
    how = ", synthesised" if event.synthesized else ""
    when = format_rfc3339(event.timestamp_ms)
    used = f"{event.tokens} of {event.token_budget} tokens{how}"
    out.print(f"{when}  {event.injection_point} for {event.agent_id}: {used}")
    for source in event.sources:
        what = f"{source.included} of {source.fragments} fragments, {source.tokens} tokens"
        problem = f"; {source.problem}" if source.problem else ""
        out.print(f"  {source.name}: {what}, {source.milliseconds} ms{problem}")
    rows = [
        (
            f.source,
            "in" if f.included else f.reason,
            str(f.tokens),
            f"{f.priority:g}",
            _cut(f"{f.label}: {f.text}" if f.label else f.text, EXCERPT),
        )
        for f in event.fragments
    ]
    if rows:
        print_table(("source", "included", "tokens", "priority", "text"), rows, numbers=(2, 3))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
