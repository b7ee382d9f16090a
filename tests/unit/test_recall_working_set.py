"""The values that an agent has worked with."""

import json
from collections.abc import Sequence

from sidecar.messages.contract import Reading, ToolCall, ToolResult
from sidecar.recall.working_set import WorkingSet


def called(tool: str, **arguments: object) -> Reading:
    call = ToolCall("c", tool, json.dumps(arguments))
    return Reading(role="assistant", wire_role="assistant", calls=(call,))


def gave(text: str) -> Reading:
    result = ToolResult("c", "", text, is_error=False)
    return Reading(role="tool", wire_role="tool", results=(result,))


def lines(*readings: Reading, room: int = 1000, visible: str = "", asked: Sequence[str] = ()) -> list[str]:
    values = WorkingSet()
    for reading in readings:
        values.add(reading)
    return values.unseen(visible, asked).lines(room, lambda text: len(text) // 4 + 1)


def test_values_stand_by_tool_the_newest_first() -> None:
    found = lines(
        called("read", path="src/a.py"), called("bash", cmd="make"), called("read", path="src/b.py")
    )
    assert found == ["read: src/b.py, src/a.py", "bash: make"]


def test_frequently_used_values_precede_recently_used_ones() -> None:
    found = lines(*[called("read", path="src/a.py")] * 3, called("read", path="src/b.py"))
    assert found == ["read: src/a.py, src/b.py"]


def test_ids_out_of_results_are_kept_though_nobody_used_them_yet() -> None:
    found = lines(
        gave('{"id": "XK42B7", "born": "1990-04-05", "pay": "card_4421", "bags": 2, "note": "a window seat"}')
    )
    assert found == ["in results: XK42B7, 1990-04-05, card_4421"]


def test_ids_next_to_a_used_one_precede_newer_ones() -> None:
    listed = gave(json.dumps([f"BOOKING{n}" for n in range(10, 30)]))
    newer = gave(json.dumps([f"flight_{n}" for n in range(10)]))
    found = lines(listed, called("look_up", booking="BOOKING20"), newer, room=60)
    assert found[1].startswith("in results: BOOKING")
    assert {f"BOOKING{n}" for n in (17, 18, 19, 21, 22, 23)} <= set(
        found[1].removeprefix("in results: ").split(", ")
    )
    assert "BOOKING16" not in found[1]


def test_values_named_like_the_request_come_first() -> None:
    paths = [f"src/module_{n}.py" for n in range(40)]
    used = [called("read", path=path) for path in ("src/login_form.py", "src/loginStore.py", *paths)]
    given = gave("credit_card_77 gift_card_12 seat_4 " + " ".join(f"flight_{n}" for n in range(40)))
    passed, found = lines(given, *used, room=50, asked=("login", "credit", "card"))
    assert passed.startswith("read: src/loginStore.py, src/login_form.py, ")
    assert found.startswith("in results: credit_card_77, gift_card_12")


def test_values_that_the_model_sees_anyway_are_left_out() -> None:
    assert lines(called("read", path="src/a.py"), visible="see src/a.py") == []


def test_long_and_many_lined_arguments_are_no_values() -> None:
    assert lines(called("edit", old="a\nb", new="x" * 500)) == []


def test_only_as_much_is_listed_as_there_is_room_for() -> None:
    found = lines(*(called("read", path=f"src/module_{n}.py") for n in range(100)), room=60)
    assert sum(len(line) // 4 for line in found) <= 60
    assert found[0].startswith("read: src/module_99.py")


def test_arguments_that_are_not_json_are_used_unchanged() -> None:
    call = ToolCall("c", "shell", "ls -la {broken")
    assert lines(Reading(role="assistant", wire_role="assistant", calls=(call,))) == ["shell: ls -la {broken"]
