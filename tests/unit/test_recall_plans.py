"""Which messages state a plan or a to-do list, and which list in them it is."""

from collections.abc import Iterator

import pytest

from sidecar.recall.plans import newest_of, newest_plan, plan_in
from sidecar.recall.retrieval import Remark
from sidecar.store.sqlite.memory import MemoryStore
from tests.store_kit import Driver
from tests.unit.test_recall_retrieval import Talk

TODO_WRITE = (
    'TodoWrite({"todos": [{"content": "Fix the lexer", "status": "completed", "activeForm": "Fixing"},'
    ' {"content": "Run the suite", "status": "in_progress"}, {"content": "Tag it", "status": "pending"}]})'
)
UPDATE_PLAN = (
    'update_plan({"explanation": "new order", "plan": [{"step": "Fix the lexer", "status": "completed"},'
    ' {"step": "Run the suite", "status": "in_progress"}, {"step": "Tag it", "status": "pending"}]})'
)
CHECK_LIST = "Progress:\n- [x] Fix the lexer\n* [ ] Run the suite\n1. [ ] Tag it"
NUMBERED = "Here is the plan:\n\n1. Fix the lexer\n2. Run the suite\n3. Tag it\n\nShall I begin?"
MARKED = "## Next steps\n- Fix the lexer\n- Run the suite\n- Tag it"


def remark(text: str, position: int = 1, role: str = "assistant", *, is_result: bool = False) -> Remark:
    return Remark(position, f"t{position}", role, 0, text, is_result)


@pytest.mark.parametrize("text", [TODO_WRITE, UPDATE_PLAN, CHECK_LIST, NUMBERED, MARKED])
def test_plans_are_recognised_by_their_lists(text: str) -> None:
    found = plan_in(remark(text))
    assert found is not None
    assert [item.text for item in found.items] == ["Fix the lexer", "Run the suite", "Tag it"]
    assert not found.is_done


@pytest.mark.parametrize("text", [TODO_WRITE, UPDATE_PLAN])
def test_calls_of_planning_tools_show_which_steps_are_done(text: str) -> None:
    found = plan_in(remark(text))
    assert found is not None
    assert [item.mark for item in found.items] == ["x", ">", " "]


def test_in_chinese_too() -> None:
    found = plan_in(remark("计划：\n1. 修复词法分析器\n2. 运行测试"))
    assert found is not None
    assert len(found.items) == 2


@pytest.mark.parametrize(
    "text",
    [
        "Reasons to like herons:\n- they wade\n- they wait",
        "The plan was fine. We went home.",
        "I plan to go on. Things I saw:\n1. a heron\n2. a gull",
        'read({"path": "plan.md"})',
    ],
)
def test_other_lists_are_no_plans(text: str) -> None:
    assert plan_in(remark(text)) is None


def test_a_file_returned_by_a_tool_is_not_a_plan() -> None:
    assert plan_in(remark(CHECK_LIST, role="tool", is_result=True)) is None


def test_a_list_that_was_emptied_ends_the_plan() -> None:
    found = newest_of([remark(TODO_WRITE, 1), remark('TodoWrite({"todos": []})', 2)], None)
    assert found is not None
    assert found.is_done


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Driver(MemoryStore) as driver:
        yield Talk(driver)


@pytest.mark.parametrize("text", [CHECK_LIST, NUMBERED, MARKED])
def test_the_newest_plan_is_found_in_a_long_history(text: str, talk: Talk) -> None:
    talk.say("What next?", "Here is the plan:\n1. Sleep\n2. Eat", "Better so:", text)
    for number in range(60):
        talk.say(f"The ferry {number} left the pier.", f"Crate {number} is on it.")
    found = talk.driver.run(newest_plan(talk, 124))
    assert found is not None
    assert found.remark.position == 4
