"""Every example of the specification is what the wire types and the schema say it is."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS, Method
from sidecar.rpc.router import explain

SPEC = Path(__file__).parents[2] / "spec"
EXAMPLES = SPEC / "examples"
SCHEMA = json.loads((SPEC / "schema.json").read_text(encoding="utf-8"))
FOLDERS = {method.name.removeprefix("$/"): method for method in METHODS}


def cases(folder: str) -> list[Path]:
    return sorted((EXAMPLES / folder).glob("*.json"))


def unknown_value(_: Any, known: list[Any], value: Any, __: Any) -> Iterator[ValidationError]:
    if value not in known:
        yield ValidationError(f"{value!r} is not among {known}")


def another_number(
    amounts: range, _: Any, names: list[str], value: Any, __: Any
) -> Iterator[ValidationError]:
    if sum(name in value for name in names) not in amounts:
        yield ValidationError(f"too many or too few of {names}")


Strict = extend(
    Draft202012Validator,
    {
        "x-known-values": unknown_value,
        "x-exactly-one": partial(another_number, range(1, 2)),
        "x-at-least-one": partial(another_number, range(1, 99)),
    },
)
"""Reads the members that begin with x- as a sender does; receivers pass over values that are new to them."""


def schema_errors(type_name: str, value: object, kind: Any = Draft202012Validator) -> list[str]:
    validator = kind({**SCHEMA, "$ref": f"#/$defs/{type_name}"})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def valid_examples() -> list[tuple[Path, Method]]:
    return [(path, method) for folder, method in FOLDERS.items() for path in cases(folder)]


def invalid_examples() -> list[tuple[Path, Method]]:
    return [(path, method) for folder, method in FOLDERS.items() for path in cases(f"invalid/{folder}")]


def type_of(path: Path, method: Method) -> str | None:
    return method.params if path.stem.startswith("params") else method.result


def test_every_type_has_an_example() -> None:
    for folder, method in FOLDERS.items():
        stems = {path.stem.partition("-")[0] for path in cases(folder)}
        assert stems == ({"params"} if method.kind == "notification" else {"params", "result"}), folder


def test_every_example_belongs_to_a_method_or_an_error() -> None:
    known = {path for path, _ in (*valid_examples(), *invalid_examples())} | set(cases("errors"))
    assert set(EXAMPLES.rglob("*.json")) == known


def test_every_valid_example_satisfies_the_schema() -> None:
    for path, method in valid_examples():
        value = json.loads(path.read_text(encoding="utf-8"))
        type_name = type_of(path, method)
        assert (schema_errors(type_name, value, Strict) == []) if type_name else value is None, path


def test_every_valid_example_is_read_and_written_without_loss() -> None:
    for path, method in valid_examples():
        value = json.loads(path.read_text(encoding="utf-8"))
        if (type_name := type_of(path, method)) is None:
            assert value is None, path
            continue
        read = msgspec.json.decode(path.read_bytes(), type=method.load(type_name))
        again = msgspec.json.decode(msgspec.json.encode(read))
        assert present(again) == present(value), path


def present(value: object) -> object:
    """Without members that are `null`, and without the one default that is never written."""
    if isinstance(value, dict):
        members = value.items()
        return {key: present(item) for key, item in members if item not in (None, "openai")}
    return [present(item) for item in value] if isinstance(value, list) else value


def test_every_invalid_example_is_refused_at_its_path_and_breaks_the_schema() -> None:
    for path, method in invalid_examples():
        case = json.loads(path.read_text(encoding="utf-8"))
        try:
            msgspec.json.decode(json.dumps(case["params"]).encode(), type=method.load(method.params))
        except msgspec.ValidationError as error:
            assert explain(error)[1].pointer == case["path"], path
        else:
            pytest.fail(f"{path} is read as if it were right")
        assert schema_errors(method.params, case["params"], Strict) != [], path


def test_every_type_of_params_that_can_be_wrong_has_an_invalid_example() -> None:
    for folder, method in FOLDERS.items():
        required = SCHEMA["$defs"][method.params].get("required", [])
        assert not required or cases(f"invalid/{folder}"), folder


def test_every_example_of_an_error_is_one() -> None:
    for path in cases("errors"):
        value = json.loads(path.read_text(encoding="utf-8"))
        entry = next(entry for entry in ERRORS if entry.name == path.stem.partition("-")[0])
        assert value["code"] == entry.code, path
        assert schema_errors("ServerError", value) == [], path
        assert schema_errors(entry.data.__name__, value["data"], Strict) == [], path
        assert entry.code in SCHEMA["$defs"][entry.data.__name__]["x-error-codes"], path
        assert msgspec.convert(value["data"], entry.data), path


def test_every_error_has_an_example() -> None:
    assert {path.stem.partition("-")[0] for path in cases("errors")} == {entry.name for entry in ERRORS}


@pytest.mark.parametrize("member", ["retryable", "hint"])
def test_an_error_of_the_server_without_advice_breaks_the_schema(member: str) -> None:
    value = json.loads((EXAMPLES / "errors/Busy.json").read_text(encoding="utf-8"))
    del value["data"][member]
    assert schema_errors("BusyData", value["data"]) != []


def test_an_answer_with_both_messages_and_edits_breaks_the_schema() -> None:
    value = json.loads((EXAMPLES / "context/assemble/result.json").read_text(encoding="utf-8"))
    assert schema_errors("AssembleContextResult", {**value, "edits": []}, Strict) != []


def definitions() -> list[tuple[str, dict[str, Any]]]:
    return sorted(SCHEMA["$defs"].items())


def test_every_definition_is_one_that_generators_of_types_read() -> None:
    for name, schema in definitions():
        assert schema["title"] == name
        assert schema["description"], name
        for inner in inside(schema):
            assert not {"if", "then", "not", "oneOf", "allOf"} & set(inner), (name, inner)
            assert "enum" not in inner or "type" in inner, (name, inner)
            options = inner.get("anyOf", [])
            assert all("$ref" in option or option.get("type") != "null" for option in options), (name, inner)


def test_an_optional_member_is_null_only_where_that_says_something() -> None:
    for name, schema in definitions():
        for member, inner in schema.get("properties", {}).items():
            if "null" in inner.get("type", "") and member not in schema.get("required", []):
                assert "`null` " in inner["description"], f"{name}.{member}"


def test_the_types_of_a_method_name_it() -> None:
    for method in METHODS:
        side = {"hostToServer": "server", "serverToHost": "host", "both": "both"}[method.direction]
        for name in filter(None, (method.params, method.result)):
            assert (SCHEMA["$defs"][name]["x-method"], SCHEMA["$defs"][name]["x-side"]) == (method.name, side)


def test_enumerations_take_values_that_are_still_to_come() -> None:
    closed = {name for name, schema in definitions() for inner in inside(schema) if "enum" in inner}
    tagged = {name for name in closed if {"kind", "type"} & set(SCHEMA["$defs"][name].get("properties", ()))}
    assert closed - tagged == {"CompactionTarget", "Projection", "SpawnMode"}, (
        "the server must not guess at these"
    )


def inside(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from inside(item)
