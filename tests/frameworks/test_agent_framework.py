"""`SidecarProvider` inside the real Microsoft Agent Framework, whose chat client follows a script."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from sidecar.integrations.agent_framework import SidecarProvider, encoded, made
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

HOST = "agent-framework"


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[type-arg]
    """A client as the framework's own ones are composed; it notes what it sees."""

    def __init__(self, script: Iterator[list[Content]]) -> None:
        super().__init__()
        self._script = script
        self.saw: list[list[Message]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **others: Any) -> Any:
        self.saw.append(list(messages))
        return self._build_response_stream(self._streamed()) if stream else self._answer(options)

    async def _answer(self, options: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", next(self._script))])

    async def _streamed(self) -> AsyncIterator[ChatResponseUpdate]:
        for content in next(self._script):
            words = content.text.split(" ") if content.type == "text" else []
            for piece in [Content.from_text(f"{word} ") for word in words] or [content]:
                yield ChatResponseUpdate(role="assistant", contents=[piece])


class Watch(ChatMiddleware):
    """Notes the messages of each call before the sidecar."""

    def __init__(self) -> None:
        self.requests: list[list[Message]] = []

    async def process(self, context: Any, call_next: Any) -> None:
        self.requests.append(list(context.messages))
        await call_next()


def called(name: str, id: str, **arguments: Any) -> list[Content]:
    return [Content.from_function_call(id, name, arguments=json.dumps(arguments))]


def looking(turns: int = TURNS, recalls: int | None = None) -> Iterator[list[Content]]:
    """What the model says: two calls of a tool in each turn, and a look at what was said in one of them."""
    for turn in range(turns):
        yield called("look", f"a{turn}", number=turn)
        yield called("look", f"b{turn}", number=turn + 100)
        if turn == recalls:
            yield called("context_search", f"s{turn}", mode="search", query="the first heron")
        yield [Content.from_text(f"Done with {turn}.")]


@tool
def look(number: int) -> str:
    """Look at a place."""
    return place(number)


def text(messages: Sequence[Message]) -> str:
    return "\n".join(str(c.text or c.result or "") for message in messages for c in message.contents)


def is_valid(messages: Sequence[Message]) -> bool:
    """Whether each call is followed by its result, and each result follows its call."""
    calls: set[str] = set()
    for message in messages:
        if {str(c.call_id) for c in message.contents if c.type == "function_result"} != calls:
            return False
        calls = {str(c.call_id) for c in message.contents if c.type == "function_call"}
    return not calls


@pytest.mark.parametrize("engine", ["default", "recall"])
def test_forty_turns_past_the_budget_and_a_sidecar_that_is_killed(
    engine: str, make: Callable[..., SidecarProvider], state: Path
) -> None:
    provider, before = make(SidecarProvider, engine=engine), Watch()
    client = Scripted(looking(recalls=30))

    @tool
    def look(number: int) -> str:
        """Look at a place."""
        if number == 20:
            kill(provider.sidecar.pid)
        return place(number)

    agent = Agent(
        client=client,
        instructions="Be brief.",
        tools=[look],
        middleware=[before],
        context_providers=[InMemoryHistoryProvider("history"), provider],
    )
    session = AgentSession(session_id="walk")

    async def walk() -> None:
        for turn in range(TURNS):
            await agent.run(question(turn), session=session)

    result_of(walk())
    whole: list[Message] = session.state["history"]["messages"]
    assert len(whole) == 6 * TURNS + 2
    assert [m.text for m in whole if m.role == "user"] == [question(turn) for turn in range(TURNS)]
    assert len(before.requests) == len(client.saw) == CALLS
    for given, chosen in zip(before.requests, client.saw, strict=True):
        assert is_valid(chosen)
        assert tokens(text([message]) for message in chosen) <= BUDGET
        objects = {id(message) for message in given}
        assert all("[ctx:" in text([m]) for m in chosen if id(m) not in objects and m.role != "system")
    assert len(client.saw[-1]) < len(before.requests[-1]) / 2
    [found] = [c for m in whole for c in m.contents if c.type == "function_result" and c.call_id == "s30"]
    assert "Bergen" in str(found.result)
    provider.sidecar.close()
    assert stored(state, HOST) == {"walk": len(whole)}


def test_agents_stream_at_once_and_see_their_own_sessions_alone(
    make: Callable[..., SidecarProvider], state: Path
) -> None:
    provider = make(SidecarProvider, engine="default")
    clients = {name: Scripted(looking(20)) for name in ("anna", "boris")}

    async def converse(name: str) -> None:
        history = InMemoryHistoryProvider("history")
        agent = Agent(client=clients[name], tools=[look], context_providers=[history, provider])
        session = AgentSession(session_id=name)
        for turn in range(20):
            stream = agent.run(f"I am {name}, question {turn}.", session=session, stream=True)
            assert len([update async for update in stream]) >= 5

    async def both() -> None:
        await asyncio.gather(converse("anna"), converse("boris"))

    result_of(both())
    for name, other in (("anna", "boris"), ("boris", "anna")):
        assert all(is_valid(messages) for messages in clients[name].saw)
        assert not any(f"I am {other}" in text(messages) for messages in clients[name].saw)
        assert any(SUMMARY.search(text(messages)) for messages in clients[name].saw)
    provider.sidecar.close()
    assert stored(state, HOST) == {"anna": 120, "boris": 120}


@pytest.mark.parametrize("shares", [False, True])
def test_an_agent_that_is_a_tool_has_a_session_of_its_own(
    shares: bool, make: Callable[..., SidecarProvider], state: Path
) -> None:
    provider = make(SidecarProvider)
    child = Agent(client=Scripted(looking(2)), name="child", tools=[look], context_providers=[provider])
    script = [called("child", "d1", task="Look around."), [Content.from_text("It is done.")]]
    delegate = child.as_tool(propagate_session=shares)
    agent = Agent(client=Scripted(iter(script)), tools=[delegate], context_providers=[provider])
    result_of(agent.run("Delegate it.", session=AgentSession(session_id="parent")))
    provider.sidecar.close()
    sessions = stored(state, HOST)
    assert sessions.pop("parent") == 4
    [(name, count)] = sessions.items()
    assert count == 6 and name.startswith("parent/child:") == shares


def test_a_session_goes_on_after_a_restart_from_what_the_framework_has_saved(
    make: Callable[..., SidecarProvider], state: Path
) -> None:
    saved, saw = json.dumps(AgentSession(session_id="long").to_dict()), list[Scripted]()
    for turns in (range(20), range(20, 30)):
        provider = make(SidecarProvider, engine="default")
        saw.append(Scripted(iter(list(looking(30))[3 * turns[0] :])))
        history = InMemoryHistoryProvider("history")
        agent = Agent(client=saw[-1], tools=[look], context_providers=[history, provider])
        session = AgentSession.from_dict(json.loads(saved))

        async def walk(agent: Any = agent, session: Any = session, turns: range = turns) -> None:
            for turn in turns:
                await agent.run(question(turn), session=session)

        result_of(walk())
        saved = json.dumps(session.to_dict())
        provider.sidecar.close()
    assert stored(state, HOST) == {"long": 180}
    assert SUMMARY.search(text(saw[0].saw[-1])) and SUMMARY.search(text(saw[1].saw[0]))
    assert len(saw[1].saw[0]) < 90


def test_the_agents_own_model_writes_summaries_where_that_is_wanted(
    make: Callable[..., SidecarProvider],
) -> None:
    class Summarising(Scripted):
        async def _answer(self, options: Any) -> ChatResponse:
            if not options.get("tools"):
                self.saw.pop()
                return ChatResponse(messages=[Message("assistant", ["They walked, and saw grass."])])
            return await super()._answer(options)

    client = Summarising(looking(30))
    provider = make(SidecarProvider, engine="default", summaries="model")
    history = InMemoryHistoryProvider("history")
    agent = Agent(client=client, tools=[look], context_providers=[history, provider])

    async def walk() -> None:
        session = agent.create_session()
        for turn in range(30):
            await agent.run(question(turn), session=session)

    result_of(walk())
    assert "They walked, and saw grass." in text(client.saw[-1])


def test_without_a_sidecar_the_agent_runs_on(
    make: Callable[..., SidecarProvider], caplog: pytest.LogCaptureFixture
) -> None:
    provider, client = make(SidecarProvider, command=("/no/such/program",)), Scripted(looking(3))
    history = InMemoryHistoryProvider("history")
    agent = Agent(client=client, tools=[look], context_providers=[history, provider])

    async def walk() -> None:
        session = agent.create_session()
        for turn in range(3):
            await agent.run(question(turn), session=session)

    with caplog.at_level(logging.WARNING):
        result_of(walk())
    assert len(client.saw[-1]) == 17
    assert "goes on without the sidecar" in caplog.text


def test_what_the_sidecar_changes_becomes_a_message_again() -> None:
    picture = Content.from_data(b"\x89PNG", media_type="image/png")
    for message in (
        Message("user", ["See.", picture]),
        Message("assistant", ["I look.", Content.from_function_call("a1", "look", arguments={"number": 1})]),
        Message("tool", [Content.from_function_result("a1", result="grass")]),
    ):
        again = made(encoded(message))
        assert encoded(again) == encoded(message) and again.role == message.role
        assert [c.type for c in again.contents] == [c.type for c in message.contents]


@pytest.mark.usefixtures("installed")
def test_the_lines_of_the_readme_run(state: Path) -> None:
    client = Scripted(iter([[Content.from_text("Good morning.")]]))
    names: dict[str, Any] = run_readme("agent-framework", {"client": client, "tools": [look]})
    assert names["result"].text == "Good morning."
    names["provider"].sidecar.close()
    assert stored(state, HOST) == {names["session"].session_id: 2}
