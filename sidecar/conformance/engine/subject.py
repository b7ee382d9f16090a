"""The engine under test: the sidecar that serves it, one conversation per check, and the suite."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.client.errors import RequestFailed
from sidecar.client.messages import AssembledContext, Message
from sidecar.client.sidecar_client import SidecarClient
from sidecar.conformance.kit import SubjectNotFound, Suite, fail, load
from sidecar.import_path import VARIABLE, absolute_path
from sidecar.protocol.base import EngineInfo, FallbackFor

SERVE = (sys.executable, "-P", "-m", "sidecar.cli.main", "serve")
"""Starts a sidecar of this installation; `-P` keeps modules of the working directory out."""

PROJECT = """\
[project]
name = "checked"
[project.entry-points."context_sidecar.engines"]
{id} = "{target}"
"""
CONFIGURATION = """\
[plugins.load]
paths = [{folder}]
"""


class EngineSubject(NamedTuple):
    """How to start a sidecar that serves the engine."""

    engine_id: str
    command: Sequence[str]
    env: Mapping[str, str]
    target: str | None = None
    """`module:Class`, if the engine is not installed or configured under its id."""


class Conversation:
    """A sidecar that serves the engine, and a session that no other check uses."""

    def __init__(self, client: SidecarClient, session: str) -> None:
        self.client = client
        self.session = session

    @property
    def engine(self) -> EngineInfo:
        """The engine's description of itself."""
        return self.client.capabilities.engine

    async def ingest(self, *messages: Mapping[str, Any], session: str | None = None) -> None:
        """Ingest messages in order."""
        for message in messages:
            await self.client.ingest(session or self.session, dict(message))

    async def assemble(
        self, budget: int, messages: Sequence[Message] | None = None, *, session: str | None = None
    ) -> AssembledContext:
        """Assemble a context, which the engine itself must answer.

        Raises:
            Violation: the engine failed, and a fallback answered.
        """
        answer = await self.client.assemble(session or self.session, budget, messages)
        expect_own(answer.fallback_for)
        return answer


def expect_own(fallback_for: FallbackFor | None) -> None:
    """Require that the engine itself has answered.

    Raises:
        Violation: a fallback answered.
    """
    if fallback_for is not None:
        fail(f"a fallback answered for {fallback_for.id}: {fallback_for.reason}")


def configured_engine(engine_id: str, command: Sequence[str] = SERVE) -> EngineSubject:
    """An engine that the sidecar started by `command` knows by its id."""
    return EngineSubject(engine_id, command, absolute_path(os.environ))


def engine_class(name: str, command: Sequence[str] = SERVE) -> EngineSubject:
    """The engine MODULE:CLASS; the working directory is searched last.

    Raises:
        SubjectNotFound: there is no such class, or it is not an engine.
    """
    engine_id = getattr(getattr(load(name), "info", None), "id", None)
    if not isinstance(engine_id, str):
        raise SubjectNotFound(f"{name} is not an engine: it has no `info = EngineInfo(...)`")
    return EngineSubject(engine_id, command, _importable(name), name)


def _importable(name: str) -> dict[str, str]:
    """Environment variables with which another process finds the module, even in the working directory."""
    top = sys.modules[name.partition(":")[0].partition(".")[0]]
    folder = Path.cwd()
    clean = absolute_path(os.environ)
    if top.__file__ is None or not Path(top.__file__).is_relative_to(folder):
        return clean
    known = clean.get(VARIABLE, os.environ.get(VARIABLE, ""))
    return {VARIABLE: os.pathsep.join(filter(None, (str(folder), known)))}


@asynccontextmanager
async def serving(
    subject: EngineSubject,
) -> AsyncGenerator[Callable[[], AbstractAsyncContextManager[Conversation]]]:
    """Provide conversations with one sidecar on a temporary store; the sidecar is restarted if it ends."""
    with tempfile.TemporaryDirectory(prefix="engine-check-") as folder:
        sidecars = _Sidecars(subject, Path(folder))
        try:
            yield sidecars.conversation
        finally:
            await sidecars.close()


class _Sidecars:
    def __init__(self, subject: EngineSubject, folder: Path) -> None:
        self._subject = subject
        self._folder = folder
        self._client: SidecarClient | None = None
        self._count = 0
        self._command = [*subject.command, *(self._load_options() if subject.target else ())]

    @asynccontextmanager
    async def conversation(self) -> AsyncGenerator[Conversation]:
        client = self._client
        if client is None or not client.alive:
            await self.close()
            client = self._client = SidecarClient.start(
                self._command,
                engine=self._subject.engine_id,
                state_dir=self._folder / "state",
                env=self._subject.env,
                on_stderr=_ignore,
            )
            await client.open()
        self._count += 1
        try:
            yield Conversation(client, f"check-{self._count}")
        except RequestFailed as error:
            fail(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await asyncio.shield(client.close())

    def _load_options(self) -> list[str]:
        project = self._folder / "engine"
        project.mkdir()
        text = PROJECT.format(id=self._subject.engine_id, target=self._subject.target)
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        config = self._folder / "config.toml"
        quoted = "'" + str(project) + "'"
        config.write_text(CONFIGURATION.format(folder=quoted), encoding="utf-8")
        return ["--config", str(config)]


def _ignore(line: str) -> None:
    del line


ENGINE_SUITE: Suite[Conversation] = Suite(
    "engine",
    {
        "stores": "the engine stores messages, so it can answer without the host's list",
        "budget": "the engine must stay within the budget",
        "owns-compaction": "the engine compacts itself",
    },
)
check = ENGINE_SUITE.check
"""Adds a check to the suite."""
