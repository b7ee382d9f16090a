"""The engine that is checked: a sidecar that serves it, one conversation for each check, and the suite."""

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
    """`module:Class` where the engine is to be found by that alone."""


class Conversation:
    """A sidecar that serves the engine, and a session that no other check has used."""

    def __init__(self, client: SidecarClient, session: str) -> None:
        self.client = client
        self.session = session

    @property
    def engine(self) -> EngineInfo:
        """What the engine says of itself."""
        return self.client.capabilities.engine

    async def tell(self, *messages: Mapping[str, Any], session: str | None = None) -> None:
        """Ingest messages in order."""
        for message in messages:
            await self.client.ingest(session or self.session, dict(message))

    async def assemble(
        self, budget: int, messages: Sequence[Message] | None = None, *, session: str | None = None
    ) -> AssembledContext:
        """An answer of the engine's own: one that stands in for it, where it failed, proves nothing.

        Raises:
            Violation: another one has answered.
        """
        answer = await self.client.assemble(session or self.session, budget, messages)
        expect_own(answer.fallback_for)
        return answer


def expect_own(fallback_for: FallbackFor | None) -> None:
    """The engine has answered by itself.

    Raises:
        Violation: another one has answered.
    """
    if fallback_for is not None:
        fail(f"another one answered for {fallback_for.id}: {fallback_for.reason}")


def configured_engine(engine_id: str, command: Sequence[str] = SERVE) -> EngineSubject:
    """An engine that the sidecar behind `command` knows."""
    return EngineSubject(engine_id, command, absolute_path(os.environ))


def engine_class(name: str, command: Sequence[str] = SERVE) -> EngineSubject:
    """The engine MODULE:CLASS; modules in the working directory are found too.

    Raises:
        SubjectNotFound: there is no such class, or it is no engine.
    """
    engine_id = getattr(getattr(load(name), "info", None), "id", None)
    if not isinstance(engine_id, str):
        raise SubjectNotFound(f"{name} has no `info = EngineInfo(...)`, so it is no engine")
    return EngineSubject(engine_id, command, _importable(name), name)


def _importable(name: str) -> dict[str, str]:
    """The environment in which a process finds the module; one that is installed needs no folder."""
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
    """Makes conversations with one sidecar on a store that is thrown away; one that ends is replaced."""
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
        self._command = [*subject.command, *(self._found_by_file() if subject.target else ())]

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
                on_stderr=_pass_over,
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

    def _found_by_file(self) -> list[str]:
        project = self._folder / "engine"
        project.mkdir()
        text = PROJECT.format(id=self._subject.engine_id, target=self._subject.target)
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        config = self._folder / "config.toml"
        quoted = "'" + str(project) + "'"
        config.write_text(CONFIGURATION.format(folder=quoted), encoding="utf-8")
        return ["--config", str(config)]


def _pass_over(line: str) -> None:
    del line


ENGINE_SUITE: Suite[Conversation] = Suite(
    "engine",
    {
        "stores": "the engine stores messages, so that an answer needs no list of the host",
        "budget": "the engine is held to the budget",
        "owns-compaction": "the engine compacts itself",
    },
)
check = ENGINE_SUITE.check
"""Adds a check to the suite."""
