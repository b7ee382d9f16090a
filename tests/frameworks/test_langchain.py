"""`SidecarMiddleware` inside the real LangChain, whose own fake model says what the script says."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from sidecar.integrations.langchain import SidecarMiddleware
from tests.frameworks.kit import (
    BUDGET,
    CALLS,
    SUMMARY,
    TURNS,
    kill,
    place,
    question,
    result_of,
    run_readme,
    stored,
    tokens,
)


class Scripted(GenericFakeChatModel):
    """LangChain's fake model; it notes what it sees."""

    saw: list[list[BaseMessage]]

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Scripted:
        """The script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        self.saw.append(messages)
        return super()._generate(messages, *args, **options)

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        """Word by word; LangChain's own fake cannot stream a message that has calls alone."""
        message = self._generate(messages).generations[0].message
        assert isinstance(message, AIMessage)
        pieces = [AIMessageChunk(word) for word in re.findall(r"\S+\s*", str(message.content))]
        for index, call in enumerate(message.tool_calls):
            piece = {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": index}
            pieces.append(AIMessageChunk("", tool_call_chunks=[tool_call_chunk(**piece)]))
        yield from (ChatGenerationChunk(message=piece) for piece in pieces)


class Watch(AgentMiddleware[Any, Any, Any]):
    """Notes the messages of each request that passes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.requests: list[list[BaseMessage]] = []

    @property
    def name(self) -> str:
        """Two of them are in one agent."""
        return self._name

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self.requests.append(list(request.messages))
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self.requests.append(list(request.messages))
        return await handler(request)


@tool
def look(number: int) -> str:
    """Look at a place."""
    return place(number)


def called(name: str, id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": id}])


def looking(turns: int, recalls: int | None = None) -> Iterator[AIMessage]:
    """Two calls of a tool in each turn, and a look at what was said in one of them."""
    for turn in range(turns):
        yield called("look", f"a{turn}", number=turn)
        yield called("look", f"b{turn}", number=turn + 100)
        if turn == recalls:
            yield called("context_search", f"s{turn}", mode="search", query="the first heron")
        yield AIMessage(f"Done with {turn}.")


def asked(turn: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(question(turn))]}


def on(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def text(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


def is_valid(messages: Sequence[BaseMessage]) -> bool:
    """Whether each result follows its call, and each call has its result."""
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        if isinstance(message, AIMessage):
            open_calls = {str(call["id"]) for call in message.tool_calls}
    return not open_calls


@pytest.mark.parametrize("engine", ["default", "recall"])
def test_forty_turns_past_the_budget_and_a_sidecar_that_is_killed(
    engine: str, make: Callable[..., SidecarMiddleware], state: Path
) -> None:
    middleware, before, behind = make(SidecarMiddleware, engine=engine), Watch("before"), Watch("behind")
    model = Scripted(messages=looking(TURNS, recalls=30), saw=[])

    @tool
    def look(number: int) -> str:
        """Look at a place."""
        if number == 20:
            kill(middleware.sidecar.pid)
        return place(number)

    agent = create_agent(
        model,
        [look],
        system_prompt="Be brief.",
        middleware=[before, middleware, behind],
        checkpointer=InMemorySaver(),
    )
    for turn in range(TURNS):
        result = agent.invoke(asked(turn), on("walk"))
    whole = result["messages"]
    assert len(whole) == 6 * TURNS + 2
    assert [m.content for m in whole if isinstance(m, HumanMessage)] == [
        question(turn) for turn in range(TURNS)
    ]
    assert len(behind.requests) == len(model.saw) == CALLS
    for given, chosen in zip(before.requests, behind.requests, strict=True):
        assert is_valid(chosen)
        assert tokens(str(message.content) for message in chosen) <= BUDGET
        objects = {id(message) for message in given}
        others = [message for message in chosen if id(message) not in objects]
        assert all("[ctx:" in str(message.content) for message in others)
    assert len(behind.requests[-1]) < len(before.requests[-1]) / 2
    found = next(m for m in whole if isinstance(m, ToolMessage) and m.name == "context_search")
    assert "Bergen" in str(found.content)
    middleware.sidecar.close()
    assert stored(state, "langchain") == {"walk": len(whole)}


def test_a_list_that_fits_goes_to_the_model_as_it_is(make: Callable[..., SidecarMiddleware]) -> None:
    before, behind = Watch("before"), Watch("behind")
    agent = create_agent(
        Scripted(messages=looking(2), saw=[]),
        [look],
        middleware=[before, make(SidecarMiddleware, engine="default"), behind],
        checkpointer=InMemorySaver(),
    )
    for turn in range(2):
        agent.invoke(asked(turn), on("short"))
    for given, chosen in zip(before.requests, behind.requests, strict=True):
        assert list(map(id, given)) == list(map(id, chosen))


def test_agents_stream_at_once_and_see_their_own_threads_alone(
    make: Callable[..., SidecarMiddleware], state: Path
) -> None:
    middleware = make(SidecarMiddleware, engine="default")
    saw: dict[str, Watch] = {}

    async def converse(name: str) -> int:
        saw[name] = Watch("behind")
        agent = create_agent(
            Scripted(messages=looking(20), saw=[]),
            [look],
            middleware=[middleware, saw[name]],
            checkpointer=InMemorySaver(),
        )
        chunks = 0
        for turn in range(20):
            said = {"messages": [HumanMessage(f"I am {name}, question {turn}.")]}
            async for _ in agent.astream(said, on(name), stream_mode="messages"):
                chunks += 1
        return chunks

    async def both() -> list[int]:
        return list(await asyncio.gather(converse("anna"), converse("boris")))

    assert all(chunks > 60 for chunks in result_of(both()))
    for name, other in (("anna", "boris"), ("boris", "anna")):
        assert all(is_valid(messages) for messages in saw[name].requests)
        assert not any(f"I am {other}" in text(messages) for messages in saw[name].requests)
        assert any("[ctx:summary" in text(messages) for messages in saw[name].requests)
    middleware.sidecar.close()
    assert stored(state, "langchain") == {"anna": 120, "boris": 120}


def test_a_subagent_has_a_session_of_its_own(make: Callable[..., SidecarMiddleware], state: Path) -> None:
    middleware = make(SidecarMiddleware, engine="default")
    child = create_agent(Scripted(messages=looking(2), saw=[]), [look], middleware=[middleware])

    @tool
    def delegate(task: str) -> str:
        """Let somebody else do it."""
        return str(child.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)

    script = iter([called("delegate", "d1", task="look around"), AIMessage("It is done.")])
    agent = create_agent(
        Scripted(messages=script, saw=[]), [delegate], middleware=[middleware], checkpointer=InMemorySaver()
    )
    result = agent.invoke(asked(0), on("parent"))
    assert str(result["messages"][2].content) == "Done with 0."
    middleware.sidecar.close()
    sessions = stored(state, "langchain")
    assert sessions.pop("parent") == 4
    [(name, count)] = sessions.items()
    assert name.startswith("parent/delegate:" if "delegate" in name else "parent/tools:") and count == 6


def test_a_thread_goes_on_after_a_restart_from_the_checkpoint_of_the_framework(
    make: Callable[..., SidecarMiddleware], state: Path, tmp_path: Path
) -> None:
    saw: list[Watch] = []
    for first, end in ((0, 20), (20, 30)):
        middleware = make(SidecarMiddleware, engine="default")
        saw.append(Watch("behind"))
        script = (message for message in list(looking(30))[3 * first :])
        with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
            agent = create_agent(
                Scripted(messages=script, saw=[]),
                [look],
                middleware=[middleware, saw[-1]],
                checkpointer=saver,
            )
            for turn in range(first, end):
                result = agent.invoke(asked(turn), on("long"))
        middleware.sidecar.close()
    assert len(result["messages"]) == 180
    assert stored(state, "langchain") == {"long": 180}
    assert SUMMARY.search(text(saw[0].requests[-1])) and SUMMARY.search(text(saw[1].requests[0]))
    assert len(saw[1].requests[0]) < 90


def test_the_agents_own_model_writes_summaries_where_that_is_wanted(
    make: Callable[..., SidecarMiddleware],
) -> None:
    class Summarising(Scripted):
        def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
            if "grass" in text(messages) and not any(isinstance(m, ToolMessage) for m in messages):
                one = GenericFakeChatModel(messages=iter([AIMessage("They walked, and saw grass.")]))
                return one._generate(messages)
            return super()._generate(messages, *args, **options)

    behind = Watch("behind")
    agent = create_agent(
        Summarising(messages=looking(30), saw=[]),
        [look],
        middleware=[make(SidecarMiddleware, engine="default", summaries="model"), behind],
        checkpointer=InMemorySaver(),
    )
    for turn in range(30):
        agent.invoke(asked(turn), on("walk"))
    assert "They walked, and saw grass." in text(behind.requests[-1])


def test_without_a_sidecar_the_agent_runs_on(
    make: Callable[..., SidecarMiddleware], caplog: pytest.LogCaptureFixture
) -> None:
    middleware, behind = make(SidecarMiddleware, command=("/no/such/program",)), Watch("behind")
    model = Scripted(messages=looking(3), saw=[])
    with caplog.at_level(logging.WARNING):
        agent = create_agent(model, [look], middleware=[middleware, behind], checkpointer=InMemorySaver())
        for turn in range(3):
            result = agent.invoke(asked(turn), on("alone"))
    assert len(result["messages"]) == 18 and len(behind.requests[-1]) == 17
    assert [caplog.text.count(part) for part in ("goes on without the sidecar", "/no/such/program")] == [1, 1]


@pytest.mark.usefixtures("installed")
def test_the_lines_of_the_readme_run(state: Path) -> None:
    model = Scripted(messages=iter([AIMessage("Good morning.")]), saw=[])
    names: dict[str, Any] = run_readme("langchain", {"model": model, "tools": [look]})
    assert names["result"]["messages"][-1].content == "Good morning."
    names["middleware"].sidecar.close()
    assert stored(state, "langchain") == {"a-thread": 2}
