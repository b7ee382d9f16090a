"""Every example of the specification is what the wire types and the schema say it is."""

import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from sidecar.protocol.base import Wire
from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS, Method
from sidecar.rpc.params import explain

SPEC = Path(__file__).parents[2] / "spec"
EXAMPLES = SPEC / "examples"
SCHEMA = json.loads((SPEC / "schema.json").read_text(encoding="utf-8"))
FOLDERS = {method.name.removeprefix("$/"): method for method in METHODS}


def cases(folder: str) -> list[Path]:
    return sorted((EXAMPLES / folder).glob("*.json"))


def schema_errors(type_name: str, value: object) -> list[str]:
    validator = Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{type_name}"})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def valid_examples() -> list[tuple[Path, Method]]:
    return [(path, method) for folder, method in FOLDERS.items() for path in cases(folder)]


def invalid_examples() -> list[tuple[Path, Method]]:
    return [(path, method) for folder, method in FOLDERS.items() for path in cases(f"invalid/{folder}")]


def named(value: object) -> str:
    return value.relative_to(EXAMPLES).as_posix() if isinstance(value, Path) else ""


def type_of(path: Path, method: Method) -> str | None:
    return method.params if path.stem.startswith("params") else method.result


def structured(path: Path, method: Method) -> type[Wire] | None:
    name = type_of(path, method)
    return method.load(name) if name else None


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_type_has_an_example(method: Method) -> None:
    stems = {path.stem.partition("-")[0] for path in cases(method.name.removeprefix("$/"))}
    assert stems == ({"params"} if method.kind == "notification" else {"params", "result"})


def test_every_example_belongs_to_a_method_or_an_error() -> None:
    known = {path for path, _ in (*valid_examples(), *invalid_examples())} | set(cases("errors"))
    assert set(EXAMPLES.rglob("*.json")) == known


@pytest.mark.parametrize(("path", "method"), valid_examples(), ids=named)
def test_a_valid_example_satisfies_the_schema(path: Path, method: Method) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    type_name = type_of(path, method)
    assert (schema_errors(type_name, value) == []) if type_name else value is None


@pytest.mark.parametrize(("path", "method"), valid_examples(), ids=named)
def test_a_valid_example_is_read_and_written_without_loss(path: Path, method: Method) -> None:
    struct = structured(path, method)
    value = json.loads(path.read_text(encoding="utf-8"))
    if struct is None:
        assert value is None
        return
    again = msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(path.read_bytes(), type=struct)))
    assert present(again) == present(value)


def present(value: object) -> object:
    """Without members that are `null`, and without the one default that is never written."""
    if isinstance(value, dict):
        members = value.items()
        return {key: present(item) for key, item in members if item not in (None, "openai")}
    return [present(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("path", "method"), invalid_examples(), ids=named)
def test_an_invalid_example_is_refused_at_its_path(path: Path, method: Method) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(json.dumps(case["params"]).encode(), type=method.load(method.params))
    assert explain(caught.value)[1].pointer == case["path"]


@pytest.mark.parametrize(("path", "method"), invalid_examples(), ids=named)
def test_an_invalid_example_breaks_the_schema(path: Path, method: Method) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    assert schema_errors(method.params, case["params"]) != []


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_type_of_params_that_can_be_wrong_has_an_invalid_example(method: Method) -> None:
    required = SCHEMA["$defs"][method.params].get("required", [])
    assert not required or cases(f"invalid/{method.name.removeprefix('$/')}")


@pytest.mark.parametrize("path", cases("errors"), ids=named)
def test_an_example_of_an_error_is_one(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    entry = next(entry for entry in ERRORS if entry.name == path.stem.partition("-")[0])
    assert value["code"] == entry.code
    assert schema_errors("ServerError", value) == []
    assert msgspec.convert(value["data"], entry.data)


def test_every_error_has_an_example() -> None:
    assert {path.stem.partition("-")[0] for path in cases("errors")} == {entry.name for entry in ERRORS}


@pytest.mark.parametrize("member", ["retryable", "hint"])
def test_an_error_of_the_server_without_advice_breaks_the_schema(member: str) -> None:
    value = json.loads((EXAMPLES / "errors/Busy.json").read_text(encoding="utf-8"))
    del value["data"][member]
    assert schema_errors("ServerError", value) != []


def test_an_answer_with_both_messages_and_edits_breaks_the_schema() -> None:
    value = json.loads((EXAMPLES / "context/assemble/result.json").read_text(encoding="utf-8"))
    assert schema_errors("AssembleContextResult", {**value, "edits": []}) != []
    assert schema_errors("AssembleContextResult", {**value, "edits": None}) == []


def test_a_message_without_role_and_type_breaks_the_schema() -> None:
    assert schema_errors("IngestContextParams", {"sessionId": "s", "message": {"content": "x"}}) != []
