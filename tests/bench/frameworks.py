"""`python -m tests.bench.frameworks`: what an adapter for an agent framework adds to a call of the model.

Turns with it and without it are taken in pairs, where the frameworks are installed: `make bench-frameworks`.
"""

import argparse
import asyncio
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.frameworks.kit import SERVE

BUDGET = 32_000
WARM_UP = 2
TICKS = os.sysconf("SC_CLK_TCK")
Turn = Callable[[str], Awaitable[object]]


def said(number: int) -> str:
    """A message of the history, of some 70 tokens."""
    return (
        f"Message {number}: the boat left at {number % 24} o'clock. "
        + "It passed the island and the pier. " * 7
    )


class Subject(NamedTuple):
    """A framework with a history: one turn of it, of a single call of the model."""

    turn: Turn
    adapter: Any
    """What has the sidecar; `None` for the framework alone."""


def langchain(messages: int, options: dict[str, Any] | None) -> Subject:
    """LangChain, with the list in memory."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

    from sidecar.integrations.langchain import SidecarMiddleware

    middleware = None if options is None else SidecarMiddleware(tools=False, **options)
    model = GenericFakeChatModel(messages=iter(lambda: AIMessage("Yes."), None))
    agent: Any = create_agent(model, middleware=[middleware] if middleware else [])
    history: list[BaseMessage] = [
        (AIMessage if n % 2 else HumanMessage)(said(n), id=f"m{n}") for n in range(messages)
    ]

    async def turn(text: str) -> None:
        history.append(HumanMessage(text))
        state = await agent.ainvoke({"messages": history}, {"configurable": {"thread_id": "bench"}})
        history[:] = state["messages"]

    return Subject(turn, middleware)


def pydantic_ai(messages: int, options: dict[str, Any] | None) -> Subject:
    """Pydantic AI, with the list in memory."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.function import FunctionModel

    from sidecar.integrations.pydantic_ai import SidecarCapability

    capability = None if options is None else SidecarCapability(tools=False, **options)
    model = FunctionModel(lambda seen, info: ModelResponse([TextPart("Yes.")]))
    agent = Agent(model, capabilities=[capability] if capability else [])
    history: list[ModelMessage] = [
        ModelResponse([TextPart(said(n))]) if n % 2 else ModelRequest([UserPromptPart(said(n))])
        for n in range(messages)
    ]

    async def turn(text: str) -> None:
        result = await agent.run(text, message_history=history, conversation_id="bench")
        history[:] = result.all_messages()

    return Subject(turn, capability)


def openai_agents(messages: int, options: dict[str, Any] | None) -> Subject:
    """The OpenAI Agents SDK, with a session in memory."""
    from agents import Agent, RunConfig, Runner, SQLiteSession
    from agents.testing import ScriptedModel
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from sidecar.integrations.openai_agents import SidecarSessions

    part = ResponseOutputText(type="output_text", text="Yes.", annotations=[])
    answer = ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[part]
    )
    agent = Agent(name="bench", model=ScriptedModel([[answer]] * 1_000))
    inner = SQLiteSession("bench")
    sidecar = None if options is None else SidecarSessions(**options)
    session: Any = sidecar.session(inner) if sidecar else inner
    config = RunConfig(tracing_disabled=True, call_model_input_filter=getattr(session, "filter", None))
    begun: list[bool] = []

    async def turn(text: str) -> None:
        if not begun:
            begun.append(True)
            items: Any = [
                {"role": "assistant" if n % 2 else "user", "content": said(n)} for n in range(messages)
            ]
            await inner.add_items(items)
        await Runner.run(agent, text, session=session, run_config=config)

    return Subject(turn, sidecar)


def agent_framework(messages: int, options: dict[str, Any] | None) -> Subject:
    """The Microsoft Agent Framework, with its history in memory."""
    from agent_framework import Agent, AgentSession, Content, InMemoryHistoryProvider, Message

    from sidecar.integrations.agent_framework import SidecarProvider
    from tests.frameworks.test_agent_framework import Scripted

    provider = None if options is None else SidecarProvider(tools=False, **options)
    history = InMemoryHistoryProvider("history")
    client = Scripted(iter(lambda: [Content.from_text("Yes.")], None))  # type: ignore[arg-type]
    agent = Agent(client=client, context_providers=[history, provider] if provider else [history])
    session = AgentSession(session_id="bench")
    session.state["history"] = {
        "messages": [Message("assistant" if n % 2 else "user", [said(n)]) for n in range(messages)]
    }

    async def turn(text: str) -> None:
        client.saw.clear()
        await agent.run(text, session=session)

    return Subject(turn, provider)


SUBJECTS = (langchain, pydantic_ai, openai_agents, agent_framework)


class Cost(NamedTuple):
    """Milliseconds of one turn."""

    wall: float
    processor: float
    """Of this process and of the sidecar."""


def processor_s(pid: int | None) -> float:
    """Seconds of a processor that this process and another one have taken."""
    other = 0.0
    if pid is not None:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        other = (int(fields[11]) + int(fields[12])) / TICKS
    return time.process_time() + other


async def compare(
    make: Callable[[int, dict[str, Any] | None], Subject], messages: int, turns: int, state: Path
) -> None:
    """Take turns of both in pairs, and print the medians."""
    options = {
        "engine": "default",
        "token_budget": BUDGET,
        "state_dir": state,
        "command": SERVE,
        "timeout_s": 120,
    }
    alone, served = make(messages, None), make(messages, options)
    costs: dict[bool, list[Cost]] = {False: [], True: []}
    for number in range(WARM_UP + turns):
        for subject in (alone, served):
            sidecar = subject.adapter.sidecar if subject.adapter else None
            gc.collect()
            pid = sidecar.pid if sidecar else None
            wall, processor = time.perf_counter(), processor_s(pid)
            await subject.turn(f"Question {number}?")
            wall = time.perf_counter() - wall
            cost = Cost(1000 * wall, 1000 * (processor_s(pid) - processor))
            if number >= WARM_UP:
                costs[subject is served].append(cost)
    served.adapter.sidecar.close()
    pairs = list(zip(costs[False], costs[True], strict=True))
    base = statistics.median(alone.wall for alone, _ in pairs)
    added = statistics.median(with_it.wall - alone.wall for alone, with_it in pairs)
    busy = statistics.median(with_it.processor - alone.processor for alone, with_it in pairs)
    times = statistics.median(with_it.processor / alone.processor for alone, with_it in pairs)
    print(f"{make.__name__:<16} {messages:>8,} {base:>9.1f} {added:>9.1f} {busy:>19.1f} {times:>8.2f}")


def main() -> None:
    """Print a row for each framework and length."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, nargs="+", default=[50, 5_000])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=[make.__name__ for make in SUBJECTS])
    arguments = parser.parse_args()
    print("framework        messages  alone ms  added ms  added processor ms    times")
    for make in SUBJECTS:
        if arguments.only and make.__name__ not in arguments.only:
            continue
        for messages in arguments.messages:
            with tempfile.TemporaryDirectory() as state:
                asyncio.run(compare(make, messages, arguments.turns, Path(state)))


if __name__ == "__main__":
    main()
