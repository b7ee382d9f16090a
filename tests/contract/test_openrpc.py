"""The OpenRPC document says of every method what the method table says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS, Method

SPEC = Path(__file__).parents[2] / "spec"
DOCUMENT = json.loads((SPEC / "openrpc.json").read_text(encoding="utf-8"))
BY_NAME = {method["name"]: method for method in DOCUMENT["methods"]}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_method_is_in_it_once() -> None:
    assert [method["name"] for method in DOCUMENT["methods"]] == [method.name for method in METHODS]


def test_every_error_is_in_it_with_its_code() -> None:
    errors = DOCUMENT["components"]["errors"]
    assert {name: error["code"] for name, error in errors.items()} == {e.name: e.code for e in ERRORS}


def test_every_reference_leads_somewhere() -> None:
    for reference in set(references(DOCUMENT)):
        value: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            assert part in value, reference
            value = value[part]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_only_requests_have_a_result(method: Method) -> None:
    assert ("result" in BY_NAME[method.name]) == (method.kind == "request")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_examples_of_params_fit_what_it_says_of_them(method: Method) -> None:
    params = BY_NAME[method.name]["params"]
    schema = {
        "type": "object",
        "properties": {param["name"]: param["schema"] for param in params},
        "required": [param["name"] for param in params if param["required"]],
        "components": DOCUMENT["components"],
    }
    folder = SPEC / "examples" / method.name.removeprefix("$/")
    for path in sorted(folder.glob("params*.json")):
        example = json.loads(path.read_text(encoding="utf-8"))
        problems = [error.message for error in Draft202012Validator(schema).iter_errors(example)]
        assert problems == [], path.name
