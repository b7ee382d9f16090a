"""A tool's schema matches the arguments it accepts and the specification's example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sidecar.engine.contract import StoringEngine
from sidecar.engine.loading import import_target
from sidecar.tools.arguments import read_arguments
from sidecar.tools.context_ask import AskArguments, ContextAsk
from sidecar.tools.context_compact import CompactArguments, CompactContext
from sidecar.tools.context_describe import ContextDescribe, DescribeArguments
from sidecar.tools.context_expand import ContextExpand, ExpandArguments
from sidecar.tools.context_grep import ContextGrep, GrepArguments
from sidecar.tools.context_search import ContextSearch, SearchArguments
from sidecar.tools.context_status import ShowStatus, StatusArguments
from sidecar.tools.contract import AgentTool, ArgumentError
from sidecar.tools.times import read_time

EXAMPLE = Path(__file__).parents[2] / "spec" / "examples" / "tools" / "list" / "result.json"
TOOLS = {
    ContextSearch: SearchArguments,
    ContextExpand: ExpandArguments,
    ContextGrep: GrepArguments,
    ShowStatus: StatusArguments,
    CompactContext: CompactArguments,
    ContextDescribe: DescribeArguments,
    ContextAsk: AskArguments,
}
SCHEMAS = {tool: json.loads(tool.input_schema) for tool in TOOLS}
VALUES = st.one_of(
    st.integers(-3, 20),
    st.floats(-2, 5, allow_nan=False),
    st.text("ab1 .漢", max_size=3),
    st.booleans(),
    st.lists(st.integers(), max_size=1),
    st.sampled_from(["search", "tail", "head", "turn", "relevant", "t1", "regex", "json", "oldest"]),
)
OFFERED = st.sampled_from(list(TOOLS))
NAMES = sorted({"other", *(name for schema in SCHEMAS.values() for name in schema["properties"])})
GIVEN = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OFFERED, GIVEN)
def test_arguments_are_accepted_exactly_if_the_schema_accepts_them(
    tool: type[AgentTool], arguments: dict[str, Any]
) -> None:
    wrong = [str(error.message) for error in Draft202012Validator(SCHEMAS[tool]).iter_errors(arguments)]
    try:
        read_arguments(json.dumps(arguments).encode(), TOOLS[tool])
    except ArgumentError:
        assert wrong
    else:
        assert wrong == []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OFFERED, GIVEN)
def test_the_argument_at_fault_is_named(tool: type[AgentTool], arguments: dict[str, Any]) -> None:
    try:
        read_arguments(json.dumps(arguments).encode(), TOOLS[tool])
    except ArgumentError as error:
        assert error.argument in SCHEMAS[tool]["properties"]
        assert str(error).startswith(f"{error.argument}: ") and "float" not in str(error)


@pytest.mark.parametrize("raw", [b"[]", b"5", b'"x"', b"{", b'{"mode":"tail","last":' + b"[" * 3000])
def test_a_value_that_is_not_an_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ArgumentError):
        read_arguments(raw, SearchArguments)


def test_the_example_of_the_specification_is_what_every_storing_engine_offers() -> None:
    offered = [import_target(target) for target in StoringEngine.tools.values()]
    tools = [
        {"name": tool.name, "description": tool.description, "inputSchema": SCHEMAS[tool]} for tool in offered
    ]
    assert json.loads(EXAMPLE.read_text(encoding="utf-8")) == {"tools": tools}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_is_documented_for_models(tool: type[AgentTool]) -> None:
    Draft202012Validator.check_schema(SCHEMAS[tool])
    assert all(member["description"] for member in SCHEMAS[tool]["properties"].values())


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2024-01-15T10:30:00Z", 1_705_314_600_000),
        ("2024-01-15T10:30:00+02:00", 1_705_307_400_000),
        ("2024-01-15", 1_705_276_800_000),
        ("2024-01-15T10:30:00.250Z", 1_705_314_600_250),
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_times_are_read_as_models_write_them(text: str, ms: int) -> None:
    assert read_time(text, "since") == ms


@pytest.mark.parametrize("text", ["yesterday", "", "12", "0001-01-01T00:00:00+23:59" + "9"])
def test_a_value_that_is_not_a_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^until: "):
        read_time(text, "until")
