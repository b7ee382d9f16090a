"""`SidecarSessions` inside the real OpenAI Agents SDK, whose own scripted model says what the script says."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, RunConfig, Runner, SQLiteSession, function_tool
from agents.items import ModelResponse
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from sidecar.integrations.openai_agents import SidecarSession, SidecarSessions, encoded, made
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

HOST = "openai-agents"
Items = Sequence[Mapping[str, Any]]


def said(text: str) -> list[ResponseOutputMessage]:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [
        ResponseOutputMessage(
            id=f"m-{text}", type="message", role="assistant", status="completed", content=[part]
        )
    ]


def called(name: str, id: str, **arguments: Any) -> list[ResponseFunctionToolCall]:
    call = json.dumps(arguments)
    return [
        ResponseFunctionToolCall(type="function_call", name=name, arguments=call, call_id=id, id=f"f{id}")
    ]


def looking(turns: int = TURNS, recalls: int | None = None) -> Iterator[Any]:
    """What the model says: two calls of a tool in each turn, and a look at what was said in one of them."""
    for turn in range(turns):
        yield called("look", f"a{turn}", number=turn)
        yield called("look", f"b{turn}", number=turn + 100)
        if turn == recalls:
            yield called("context_search", f"s{turn}", mode="search", query="the first heron")
        yield said(f"Done with {turn}.")


class Watch:
    """A filter around that of a session, which notes what goes in and what comes out."""

    def __init__(self, session: SidecarSession) -> None:
        self._session = session
        self.given: list[Items] = []
        self.chosen: list[Items] = []

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        self.given.append(list(data.model_data.input))
        answer = await self._session.filter(data)
        self.chosen.append(answer.input)
        return answer

    @property
    def config(self) -> RunConfig:
        return RunConfig(call_model_input_filter=self, tracing_disabled=True)


def text(items: Items) -> str:
    return "\n".join(json.dumps(item) for item in items)


def words(item: Mapping[str, Any]) -> str:
    content = item.get("content") or f"{item.get('arguments', '')}{item.get('output', '')}"
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def is_valid(items: Items) -> bool:
    """Whether each output follows its call, and each call has its output before anything else is said."""
    calls: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            calls.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in calls:
                return False
            calls.remove(item["call_id"])
        elif calls:
            return False
    return not calls


@pytest.fixture
def kept() -> Iterator[Callable[..., SQLiteSession]]:
    """Makes sessions of the SDK, and closes them."""
    made: list[SQLiteSession] = []

    def keep(*where: Any) -> SQLiteSession:
        made.append(SQLiteSession(*where))
        return made[-1]

    yield keep
    for session in made:
        session.close()


LOOK = function_tool(place, name_override="look", description_override="Look at a place.")


@pytest.mark.parametrize("engine", ["default", "recall"])
def test_forty_turns_past_the_budget_and_a_sidecar_that_is_killed(
    engine: str, make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession], state: Path
) -> None:
    sidecar = make(SidecarSessions, engine=engine)

    @function_tool
    def look(number: int) -> str:
        """Look at a place."""
        if number == 20:
            kill(sidecar.sidecar.pid)
        return place(number)

    model = ScriptedModel(looking(recalls=30))
    agent = Agent(name="a", instructions="Be brief.", model=model, tools=[look, *sidecar.tools()])
    session = sidecar.session(kept("walk"))
    watch = Watch(session)
    for turn in range(TURNS):
        Runner.run_sync(agent, question(turn), session=session, run_config=watch.config)
    whole: Items = result_of(session.get_items())
    assert len(whole) == 6 * TURNS + 2
    asked = [item["content"] for item in whole if item.get("role") == "user"]
    assert asked == [question(turn) for turn in range(TURNS)]
    assert len(watch.given) == len(watch.chosen) == CALLS
    for given, chosen in zip(watch.given, watch.chosen, strict=True):
        assert is_valid(chosen)
        assert tokens(map(words, chosen)) <= BUDGET
        objects = {id(item) for item in given}
        assert all("[ctx:" in text([item]) for item in chosen if id(item) not in objects)
    assert len(watch.chosen[-1]) < len(watch.given[-1]) / 2
    [found] = [i for i in whole if i.get("call_id") == "s30" and i["type"] == "function_call_output"]
    assert "Bergen" in found["output"]
    sidecar.sidecar.close()
    assert stored(state, HOST) == {"walk": len(whole)}


def test_a_list_that_fits_goes_to_the_model_as_it_is(
    make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession]
) -> None:
    session = make(SidecarSessions).session(kept("short"))
    watch = Watch(session)
    agent = Agent(name="a", instructions="Be brief.", model=ScriptedModel(looking(2)), tools=[LOOK])
    for turn in range(2):
        Runner.run_sync(agent, question(turn), session=session, run_config=watch.config)
    assert len(watch.given) == 6
    for given, chosen in zip(watch.given, watch.chosen, strict=True):
        assert list(map(id, given)) == list(map(id, chosen))


def test_agents_stream_at_once_and_see_their_own_sessions_alone(
    make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession], state: Path
) -> None:
    sidecar = make(SidecarSessions, engine="default")
    saw: dict[str, Watch] = {}

    async def converse(name: str) -> None:
        session = sidecar.session(kept(name))
        saw[name] = watch = Watch(session)
        agent = Agent(name="a", model=ScriptedModel(looking(20)), tools=[LOOK])
        for turn in range(20):
            said = f"I am {name}, question {turn}."
            run = Runner.run_streamed(agent, said, session=session, run_config=watch.config)
            assert len([event async for event in run.stream_events()]) > 5

    async def both() -> None:
        await asyncio.gather(converse("anna"), converse("boris"))

    result_of(both())
    for name, other in (("anna", "boris"), ("boris", "anna")):
        assert all(is_valid(items) for items in saw[name].chosen)
        assert not any(f"I am {other}" in text(items) for items in saw[name].chosen)
        assert any(SUMMARY.search(text(items)) for items in saw[name].chosen)
    sidecar.sidecar.close()
    assert stored(state, HOST) == {"anna": 120, "boris": 120}


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_that_is_a_tool_has_sessions_of_its_own(
    streams: bool, make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession], state: Path
) -> None:
    sidecar = make(SidecarSessions)
    child = Agent(name="child", model=ScriptedModel(looking(2)), tools=[LOOK])
    script = [
        called("delegate", "d1", input="Look around."),
        called("delegate", "d2", input="Look again."),
        said("It is done."),
        said("As before."),
    ]
    tool = child.as_tool("delegate", "Let somebody else do it.")
    agent = Agent(name="a", model=ScriptedModel(script), tools=[tool])
    session = sidecar.session(kept("parent"))
    config = RunConfig(call_model_input_filter=session.filter, tracing_disabled=True)

    async def run(said: str) -> None:
        if not streams:
            await Runner.run(agent, said, session=session, run_config=config)
            return
        async for _ in Runner.run_streamed(agent, said, session=session, run_config=config).stream_events():
            pass

    async def both() -> None:
        # The child is asked with the very words of its parent.
        await run("Look around.")
        await run("And again?")

    result_of(both())
    sidecar.sidecar.close()
    sessions = stored(state, HOST)
    assert sessions.pop("parent") == 8
    assert all(name.startswith("parent/child:") for name in sessions)
    assert list(sessions.values()) == [5, 5]


def test_a_session_goes_on_after_a_restart_and_is_rewound_and_erased(
    make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession], state: Path, tmp_path: Path
) -> None:
    saw: list[Watch] = []
    for turns in (range(20), range(20, 30)):
        sidecar = make(SidecarSessions, engine="default")
        session = sidecar.session(kept("long", tmp_path / "threads.db"))
        saw.append(Watch(session))
        model = ScriptedModel(list(looking(30))[3 * turns[0] :])
        agent = Agent(name="a", model=model, tools=[LOOK])
        for turn in turns:
            Runner.run_sync(agent, question(turn), session=session, run_config=saw[-1].config)
        sidecar.sidecar.close()
    assert stored(state, HOST) == {"long": 180}
    assert SUMMARY.search(text(saw[0].chosen[-1])) and SUMMARY.search(text(saw[1].chosen[0]))
    assert len(saw[1].chosen[0]) < 90

    async def rewind() -> None:
        for _ in range(6):
            await session.pop_item()

    result_of(rewind())
    agent.model = ScriptedModel([said("Again.")])
    Runner.run_sync(agent, "Something else?", session=session, run_config=saw[-1].config)
    sidecar.sidecar.close()
    assert stored(state, HOST) == {"long": 176}
    result_of(session.clear_session())
    sidecar.sidecar.close()
    assert stored(state, HOST) == {}


def test_the_agents_own_model_writes_summaries_where_that_is_wanted(
    make: Callable[..., SidecarSessions],
    kept: Callable[..., SQLiteSession],
) -> None:
    class Summarising(ScriptedModel):
        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            if not options.get("tools"):
                return ModelResponse(said("They walked, and saw grass."), Usage(), None)
            return await super().get_response(*args, **options)

    session = make(SidecarSessions, engine="default", summaries="model").session(kept("walk"))
    watch = Watch(session)
    agent = Agent(name="a", model=Summarising(looking(30)), tools=[LOOK])
    for turn in range(30):
        Runner.run_sync(agent, question(turn), session=session, run_config=watch.config)
    assert "They walked, and saw grass." in text(watch.chosen[-1])


def test_without_a_sidecar_the_agent_runs_on(
    make: Callable[..., SidecarSessions], kept: Callable[..., SQLiteSession], caplog: pytest.LogCaptureFixture
) -> None:
    sidecar = make(SidecarSessions, command=("/no/such/program",))
    session = sidecar.session(kept("alone"))
    watch = Watch(session)
    with caplog.at_level(logging.WARNING):
        agent = Agent(name="a", model=ScriptedModel(looking(3)), tools=[LOOK, *sidecar.tools()])
        for turn in range(3):
            Runner.run_sync(agent, question(turn), session=session, run_config=watch.config)
    assert len(watch.chosen[-1]) == 17
    assert "goes on without the sidecar" in caplog.text


def test_items_come_back_from_the_wire_as_they_are() -> None:
    item: Any = {"id": "f1", "type": "function_call", "call_id": "1", "name": "\ud800", "arguments": "{}"}
    assert made(encoded(item)) == {key: value for key, value in item.items() if key != "id"}


@pytest.mark.usefixtures("installed")
def test_the_lines_of_the_readme_run(state: Path) -> None:
    tool: FunctionTool = LOOK
    names: dict[str, Any] = run_readme(
        "openai-agents", {"model": ScriptedModel([said("Good morning.")]), "tools": [tool]}
    )
    assert names["result"].final_output == "Good morning."
    names["session"]._inner.close()
    names["sidecar"].sidecar.close()
    assert stored(state, HOST) == {"a-thread": 2}
