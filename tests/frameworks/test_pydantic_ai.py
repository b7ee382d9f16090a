"""`SidecarCapability` inside the real Pydantic AI, whose own function model says what the script says."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from sidecar.integrations.pydantic_ai import SidecarCapability, encoded, made
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

Parts = list[TextPart | ToolCallPart]


def looking(turns: int = TURNS, recalls: int | None = None) -> Iterator[Parts]:
    """What the model says: two calls of a tool in each turn, and a look at what was said in one of them."""
    for turn in range(turns):
        yield [ToolCallPart("look", {"number": turn}, f"a{turn}")]
        yield [ToolCallPart("look", {"number": turn + 100}, f"b{turn}")]
        if turn == recalls:
            query = {"mode": "search", "query": "the first heron"}
            yield [ToolCallPart("context_search", query, f"s{turn}")]
        yield [TextPart(f"Done with {turn}.")]


def scripted(script: Iterator[Parts]) -> FunctionModel:
    """The framework's own fake, which answers at once or word by word."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(next(script))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for part in next(script):
            if isinstance(part, ToolCallPart):
                yield {
                    0: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)
                }
            else:
                for word in part.content.split(" "):
                    yield f"{word} "

    return FunctionModel(answer, stream_function=stream)


class Watch(AbstractCapability[Any]):
    """Notes the messages of each request that passes, before the sidecar or behind it."""

    def __init__(self, behind: bool) -> None:
        self._behind = behind
        self.requests: list[list[ModelMessage]] = []

    def get_ordering(self) -> CapabilityOrdering:
        """Behind is nearer to the model."""
        return CapabilityOrdering("innermost" if self._behind else "outermost")

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        self.requests.append(list(request_context.messages))
        return await handler(request_context)


def text(messages: Sequence[ModelMessage]) -> str:
    return "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)


def is_valid(messages: Sequence[ModelMessage]) -> bool:
    """Whether each call is followed by its result, and each result follows its call."""
    calls: set[str] = set()
    for message in messages:
        results = {part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)}
        if results != calls:
            return False
        calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
    return not calls


@pytest.mark.parametrize("engine", ["default", "recall"])
def test_forty_turns_past_the_budget_and_a_sidecar_that_is_killed(
    engine: str, make: Callable[..., SidecarCapability], state: Path
) -> None:
    capability, before, behind = make(SidecarCapability, engine=engine), Watch(False), Watch(True)
    agent = Agent(
        scripted(looking(recalls=30)), system_prompt="Be brief.", capabilities=[before, capability, behind]
    )

    @agent.tool_plain
    def look(number: int) -> str:
        if number == 20:
            kill(capability.sidecar.pid)
        return place(number)

    history: list[ModelMessage] = []
    for turn in range(TURNS):
        result = agent.run_sync(question(turn), message_history=history, conversation_id="walk")
        history = result.all_messages()
    assert len(history) == 6 * TURNS + 2
    asked = [p.content for m in history for p in m.parts if isinstance(p, UserPromptPart)]
    assert asked == [question(turn) for turn in range(TURNS)]
    assert len(behind.requests) == CALLS
    for given, chosen in zip(before.requests, behind.requests, strict=True):
        assert is_valid(chosen)
        assert tokens(text([message]) for message in chosen) <= BUDGET
        assert any(isinstance(part, SystemPromptPart) for message in chosen for part in message.parts)
        objects = {id(message) for message in given}
        others = [message for message in chosen if id(message) not in objects]
        assert all(
            "[ctx:" in text([message]) or all(isinstance(part, SystemPromptPart) for part in message.parts)
            for message in others
        )
    assert len(behind.requests[-1]) < len(before.requests[-1]) / 2
    [found] = [
        p for m in history for p in m.parts if isinstance(p, ToolReturnPart) and p.tool_call_id == "s30"
    ]
    assert "Bergen" in str(found.content)
    capability.sidecar.close()
    assert stored(state, "pydantic-ai") == {"walk": len(history)}


def test_a_list_that_fits_goes_to_the_model_as_it_is(make: Callable[..., SidecarCapability]) -> None:
    before, behind = Watch(False), Watch(True)
    capabilities = [before, make(SidecarCapability), behind]
    agent = Agent(scripted(looking(2)), capabilities=capabilities)
    agent.tool_plain(place, name="look")
    first = agent.run_sync(question(0))
    agent.run_sync(question(1), message_history=first.all_messages())
    assert len(before.requests) == 6
    for given, chosen in zip(before.requests, behind.requests, strict=True):
        assert list(map(id, given)) == list(map(id, chosen))


def test_agents_stream_at_once_and_see_their_own_conversations_alone(
    make: Callable[..., SidecarCapability], state: Path
) -> None:
    capability = make(SidecarCapability, engine="default")
    saw: dict[str, Watch] = {}

    async def converse(name: str) -> None:
        saw[name] = Watch(True)
        agent = Agent(scripted(looking(20)), capabilities=[capability, saw[name]])
        agent.tool_plain(place, name="look")
        history: list[ModelMessage] = []
        for turn in range(20):
            said = f"I am {name}, question {turn}."
            async with agent.run_stream(said, message_history=history, conversation_id=name) as run:
                pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
            assert len(pieces) == 3
            history = run.all_messages()

    async def both() -> None:
        await asyncio.gather(converse("anna"), converse("boris"))

    result_of(both())
    for name, other in (("anna", "boris"), ("boris", "anna")):
        assert all(is_valid(messages) for messages in saw[name].requests)
        assert not any(f"I am {other}" in text(messages) for messages in saw[name].requests)
        assert any(SUMMARY.search(text(messages)) for messages in saw[name].requests)
    capability.sidecar.close()
    assert stored(state, "pydantic-ai") == {"anna": 120, "boris": 120}


def test_a_subagent_has_a_session_of_its_own(make: Callable[..., SidecarCapability], state: Path) -> None:
    capability = make(SidecarCapability)
    child = Agent(scripted(looking(2)), capabilities=[capability])
    child.tool_plain(place, name="look")
    script: list[Parts] = [[ToolCallPart("delegate", {"task": "look"}, "d1")], [TextPart("It is done.")]]
    agent = Agent(scripted(iter(script)), capabilities=[capability])
    children: list[str] = []

    @agent.tool_plain
    async def delegate(task: str) -> str:
        result = await child.run(task)
        children.append(str(result.all_messages()[-1].conversation_id))
        return str(result.output)

    agent.run_sync("Look around.", conversation_id="parent")
    capability.sidecar.close()
    assert stored(state, "pydantic-ai") == {"parent": 4, children[0]: 6}


def test_a_conversation_goes_on_after_a_restart_from_what_the_framework_has_saved(
    make: Callable[..., SidecarCapability], state: Path
) -> None:
    saved, conversation, saw = b"[]", "", list[Watch]()
    for turns in (range(20), range(20, 30)):
        capability = make(SidecarCapability, engine="default")
        saw.append(Watch(True))
        agent = Agent(scripted(iter(list(looking(30))[3 * turns[0] :])), capabilities=[capability, saw[-1]])
        agent.tool_plain(place, name="look")
        history = ModelMessagesTypeAdapter.validate_json(saved)
        for turn in turns:
            result = agent.run_sync(question(turn), message_history=history)
            history = result.all_messages()
        conversation = str(history[-1].conversation_id)
        saved = result.all_messages_json()
        capability.sidecar.close()
    assert len(history) == 180 and stored(state, "pydantic-ai") == {conversation: 180}
    assert SUMMARY.search(text(saw[0].requests[-1])) and SUMMARY.search(text(saw[1].requests[0]))
    assert len(saw[1].requests[0]) < 90


def test_the_agents_own_model_writes_summaries_where_that_is_wanted(
    make: Callable[..., SidecarCapability],
) -> None:
    script = looking(30)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not info.function_tools:
            return ModelResponse([TextPart("They walked, and saw grass.")])
        return ModelResponse(next(script))

    behind = Watch(True)
    capabilities = [make(SidecarCapability, engine="default", summaries="model"), behind]
    agent = Agent(FunctionModel(answer), capabilities=capabilities)
    agent.tool_plain(place, name="look")
    history: list[ModelMessage] = []
    for turn in range(30):
        history = agent.run_sync(question(turn), message_history=history).all_messages()
    assert "They walked, and saw grass." in text(behind.requests[-1])


def test_without_a_sidecar_the_agent_runs_on(
    make: Callable[..., SidecarCapability], caplog: pytest.LogCaptureFixture
) -> None:
    behind = Watch(True)
    capability = make(SidecarCapability, command=("/no/such/program",))
    agent = Agent(scripted(looking(3)), capabilities=[capability, behind])
    agent.tool_plain(place, name="look")
    history: list[ModelMessage] = []
    with caplog.at_level(logging.WARNING):
        for turn in range(3):
            history = agent.run_sync(question(turn), message_history=history).all_messages()
    assert len(history) == 18 and len(behind.requests[-1]) == 17
    assert [caplog.text.count(part) for part in ("goes on without the sidecar", "/no/such/program")] == [1, 1]


def test_what_the_sidecar_changes_becomes_a_message_again() -> None:
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    request = ModelRequest([ToolReturnPart("look", "grass", "a1"), UserPromptPart(["\ud800 see", picture])])
    response = ModelResponse([TextPart("I look."), ToolCallPart("look", '{"number": 1}', "a1")])
    again = made(encoded(request), {"a1": "look"})
    assert [type(part) for part in again.parts] == [ToolReturnPart, UserPromptPart, UserPromptPart]
    assert [part.content for part in again.parts] == ["grass", "\ud800 see", [picture]]
    again = made(encoded(response), {})
    assert again.parts == [TextPart("I look."), ToolCallPart("look", {"number": 1}, "a1")]


@pytest.mark.usefixtures("installed")
def test_the_lines_of_the_readme_run(state: Path) -> None:
    script: list[Parts] = [[TextPart("Good morning.")], [TextPart("You said good morning.")]]
    names = run_readme("pydantic-ai", {"model": scripted(iter(script)), "tools": [place]})
    assert names["result"].output == "You said good morning."  # type: ignore[attr-defined]
    names["capability"].sidecar.close()  # type: ignore[attr-defined]
    assert list(stored(state, "pydantic-ai").values()) == [4]
