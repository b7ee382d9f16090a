"""What the model is told of a tool is what the tool takes, and what the specification shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sidecar.tools.arguments import read_arguments
from sidecar.tools.context_search import ContextSearch, SearchArguments
from sidecar.tools.contract import ArgumentError

EXAMPLE = Path(__file__).parents[2] / "spec" / "examples" / "tools" / "list" / "result.json"
SCHEMA = json.loads(ContextSearch.input_schema)
VALIDATOR = Draft202012Validator(SCHEMA)
VALUES = st.one_of(
    st.integers(-3, 20),
    st.floats(-2, 5, allow_nan=False),
    st.text(max_size=3),
    st.booleans(),
    st.lists(st.integers(), max_size=1),
    st.sampled_from(["search", "tail", "head", "turn", "relevant", "t1"]),
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), VALUES, max_size=4))
def test_arguments_are_taken_exactly_where_the_schema_takes_them(arguments: dict[str, object]) -> None:
    wrong = [str(error.message) for error in VALIDATOR.iter_errors(arguments)]
    try:
        read_arguments(json.dumps(arguments).encode(), SearchArguments)
    except ArgumentError:
        assert wrong
    else:
        assert wrong == []


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"]]), VALUES, max_size=4))
def test_the_argument_at_fault_is_named(arguments: dict[str, object]) -> None:
    try:
        read_arguments(json.dumps(arguments).encode(), SearchArguments)
    except ArgumentError as error:
        assert error.argument in SCHEMA["properties"]
        assert str(error).startswith(f"{error.argument}: ") and "float" not in str(error)


@pytest.mark.parametrize("raw", [b"[]", b"5", b'"x"', b"{", b'{"mode":"tail","last":' + b"[" * 3000])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ArgumentError):
        read_arguments(raw, SearchArguments)


def test_the_example_of_the_specification_is_the_tool() -> None:
    tool = {"name": ContextSearch.name, "description": ContextSearch.description, "inputSchema": SCHEMA}
    assert json.loads(EXAMPLE.read_text(encoding="utf-8")) == {"tools": [tool]}
