"""What all adapters for agent frameworks share: options, sessions, turns, tools, original messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict, TypeVar

from sidecar.client import SidecarClient
from sidecar.client.errors import InvalidParams
from sidecar.client.messages import AssembledContext
from sidecar.client.requests import AboutSession
from sidecar.client.sidecar_client import DEFAULT_COMMAND
from sidecar.integrations.shared import TIMEOUT_S, Complete, SharedSidecar, Work
from sidecar.protocol.base import MessageFormat, ToolDefinition
from sidecar.protocol.runtime import CompleteRuntimeParams

M = TypeVar("M")

NOTHING_FOUND = "The earlier conversation cannot be looked up at the moment."
"""What the model reads where a tool of the engine fails."""
_CONFIG: Mapping[str, object] = {"memory": {"placement": "message"}}
"""Frameworks keep the user's messages as they are, so that nothing can be appended to them."""
_COMPLETION_S = 120.0
_shared: dict[str, SharedSidecar] = {}
"""The processes of this program, by their options: agents with the same ones share a process."""


class AgentOptions(TypedDict, total=False):
    """The options of every adapter."""

    engine: str | None
    """The engine; without one the configuration decides."""
    token_budget: int | None
    """Tokens for the messages, without system prompt and tools."""
    agent_id: str | None
    """The owner of the sessions, for settings of one agent."""
    summaries: Literal["model", "deterministic"]
    """`model` lets an engine ask the agent's own model; otherwise summaries are made without one."""
    tools: bool
    """Whether the model gets the tools that look up what it does not see any more; true by default."""
    namespace: str | None
    """Where in the store the sessions are kept; by default under the name of the framework."""
    state_dir: str | Path | None
    """The folder of the store."""
    config: Mapping[str, object] | None
    """Settings, as in the configuration file."""
    command: Sequence[str]
    """The command that starts the sidecar."""
    timeout_s: float
    """How long an agent waits for one answer before it goes on without the sidecar."""


class Run(NamedTuple):
    """The session of a run, and that of the run whose tool has started it, if one has."""

    session: str
    parent: str | None = None


_running: ContextVar[Run | None] = ContextVar("context_sidecar_run", default=None)


@contextmanager
def running(session: str) -> Generator[Run]:
    """The run inside this block; runs that its tools start are its children."""
    around = _running.get()
    parent = around.session if around is not None and around.session != session else None
    mark = _running.set(run := Run(session, parent))
    try:
        yield run
    finally:
        _running.reset(mark)


def current_run() -> Run | None:
    """The run that this code is part of."""
    return _running.get()


class AgentContext:
    """The requests of one agent to the process that it shares with others."""

    def __init__(
        self, host: str, message_format: MessageFormat, options: AgentOptions, *, waits: bool = True
    ) -> None:
        self._budget = options.get("token_budget")
        self._agent_id = options.get("agent_id")
        self._about: AboutSession = {"agent_id": self._agent_id} if self._agent_id else {}
        self._waits = waits
        """Whether a turn ends after its compaction: models of an event loop answer while it runs."""
        self._children: set[str] = set()
        """Sessions of subagents at work."""
        self.offers_tools = options.get("tools", True)
        self.completes = options.get("summaries") == "model"
        state_dir = options.get("state_dir")
        settings = {
            "engine": options.get("engine"),
            "namespace": options.get("namespace"),
            "state_dir": str(state_dir) if state_dir else None,
            "config": {**_CONFIG, **(options.get("config") or {})},
            "command": tuple(options.get("command", DEFAULT_COMMAND)),
            "timeout_s": options.get("timeout_s", TIMEOUT_S),
            "completes": self.completes,
        }
        key = json.dumps([host, message_format, settings], sort_keys=True, default=str)
        if key not in _shared:
            _shared[key] = SharedSidecar(message_format=message_format, host=host, **settings)  # pyright: ignore[reportArgumentType]
        self.sidecar = _shared[key]
        """The process that serves this agent."""

    def assembling(
        self, run: Run, raw: list[bytes], complete: Complete | None = None
    ) -> Work[AssembledContext]:
        """What the model should see of these messages; `complete` answers for the agent's model."""
        if self.completes and complete is not None:
            self.sidecar.use_model(run.session, complete)

        async def work(client: SidecarClient) -> AssembledContext:
            if run.parent is not None and run.session not in self._children:
                self._children.add(run.session)
                await client.prepare_spawn(
                    run.parent,
                    run.session,
                    "isolated",
                    parent_session_id=run.parent,
                    child_session_id=run.session,
                    agent_id=self._agent_id,
                )
            return await client.assemble(run.session, self._budget, raw, **self._about)

        return work

    def committing(self, run: Run, key: str, turn: list[bytes]) -> Work[None]:
        """Keep the turn that has ended; the key says which one it is."""

        async def work(client: SidecarClient) -> None:
            if turn:
                await client.commit_turn(run.session, key, turn, **self._about)
            if turn and self.completes:
                compacting = self._compact(client, run.session)
                if self._waits:
                    await compacting
                else:
                    self.sidecar.go_on(compacting, "context/compact")
            if run.parent is not None:
                self._children.discard(run.session)
                await client.subagent_ended(run.session, "completed", agent_id=self._agent_id)

        return work

    async def _compact(self, client: SidecarClient, session: str) -> None:
        await client.compact(session, self._budget, compaction_target="threshold", **self._about)

    def rewinding(self, session: str, newest: bytes) -> Work[None]:
        """Forget the newest message of a session, if it is this one."""

        async def work(client: SidecarClient) -> None:
            before, last = None, None
            async for page in client.export(session, **self._about):
                for message in page.messages:
                    before, last = last, message
            if last is None or last.body != newest:
                return
            if before is None:
                await client.delete(session, **self._about)
            else:
                await client.truncate(session, before.message_id, **self._about)

        return work

    def erasing(self, session: str) -> Work[None]:
        """Forget a session that the framework has forgotten."""

        async def work(client: SidecarClient) -> None:
            await client.delete(session, **self._about)

        return work

    async def tool_definitions(self, client: SidecarClient) -> list[ToolDefinition]:
        """The tools of the engine."""
        return await client.tools(agent_id=self._agent_id) if self.offers_tools else []

    def calling(self, session: str, name: str, arguments: Mapping[str, object]) -> Work[str]:
        """What a tool of the engine finds in a session."""

        async def work(client: SidecarClient) -> str:
            try:
                found = await client.call_tool(session, name, arguments, **self._about)
            except InvalidParams as error:
                return f"Wrong arguments: {error}"
            return "\n".join(part.text for part in found.content)

        return work


def restored(
    originals: Sequence[M], raw: Sequence[bytes], bodies: Sequence[bytes], made: Callable[[bytes], M]
) -> list[M]:
    """The messages of an answer: those that were kept as the objects that they were, others as `made` says.

    Of messages that say the same the newest are taken first, since windows end with the newest one.
    """
    kept: dict[bytes, list[M]] = {}
    for original, body in zip(originals, raw, strict=True):
        kept.setdefault(body, []).append(original)
    messages = [kept[body].pop() if kept.get(body) else made(body) for body in reversed(bodies)]
    messages.reverse()
    return messages


def on_this_loop(complete: Callable[[CompleteRuntimeParams], Coroutine[object, object, str]]) -> Complete:
    """A model that belongs to the running event loop, for the thread that asks it."""
    loop = asyncio.get_running_loop()

    def called(params: CompleteRuntimeParams) -> str:
        if not loop.is_running():
            raise RuntimeError("the run whose model should answer has ended")
        answer = asyncio.run_coroutine_threadsafe(complete(params), loop)
        try:
            return answer.result(_COMPLETION_S)
        except TimeoutError:
            answer.cancel()
            raise

    return called


def dumped(message: Mapping[str, object]) -> bytes:
    """A message as JSON; halves of surrogate pairs, which UTF-8 cannot have, are escaped."""
    try:
        return json.dumps(message, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return json.dumps(message, default=str).encode()
