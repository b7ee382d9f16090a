from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from sidecar.codegen import model as reader
from sidecar.codegen.generate import TARGETS, generate
from sidecar.codegen.markdown import table
from sidecar.codegen.model import (
    Choice,
    Listing,
    MissingDocstring,
    Number,
    OneOf,
    Opaque,
    Ref,
    Text,
    UnsupportedType,
    field_docs,
    read_protocol,
)
from sidecar.protocol.base import Wire

ROOT = Path(__file__).parents[2]


class Undocumented(Wire, frozen=True, kw_only=True):
    """A type with an undocumented field."""

    size: int


class Unspeakable(Wire, frozen=True, kw_only=True):
    """A type with a field that the model cannot express."""

    size: Annotated[bytes, Meta(max_length=3)]
    """Bytes, which JSON does not have."""


def test_the_generated_files_match_the_source() -> None:
    assert generate(ROOT, check=True) == []


def test_generating_twice_changes_nothing(tmp_path: Path) -> None:
    assert generate(tmp_path, check=False) == [target.path for target in TARGETS]
    assert generate(tmp_path, check=False) == []


def test_a_check_reports_drift_and_writes_nothing(tmp_path: Path) -> None:
    generate(tmp_path, check=False)
    changed, gone = tmp_path / "spec/errors.md", tmp_path / "spec/schema.json"
    changed.write_text("edited by hand", encoding="utf-8")
    gone.unlink()
    assert generate(tmp_path, check=True) == ["spec/schema.json", "spec/errors.md"]
    assert changed.read_text(encoding="utf-8") == "edited by hand"
    assert not gone.exists()


def test_every_generated_file_says_how_to_remake_it() -> None:
    for target in TARGETS:
        assert "make schema" in (ROOT / target.path).read_text(encoding="utf-8")[:400]


def test_the_model_distinguishes_required_from_optional() -> None:
    members = {member.name: member for member in read_protocol().types["IngestContextParams"].members}
    assert members["sessionId"].required
    assert members["message"].required
    assert not members["messageId"].required


def test_the_model_has_the_shapes_of_the_wire() -> None:
    types = read_protocol().types
    shapes = {member.name: member.shape for member in types["AssembleContextResult"].members}
    assert shapes["messages"] == Listing(Ref("Message"))
    assert shapes["edits"] == Listing(Ref("MessageEdit"))
    assert shapes["estimatedTokens"] == Number(True, 0, 2**53 - 1)
    assert shapes["promptAuthority"] == Ref("PromptAuthority")
    session = {member.name: member.shape for member in types["AfterTurnContextParams"].members}
    assert session["sessionId"] == Ref("SessionId")
    assert session["usage"] == Opaque(True)
    assert session["workDoneToken"] == OneOf((Number(True), Text()))


def test_the_model_has_the_values_that_have_names() -> None:
    values = {name: value.shape for name, value in read_protocol().values.items()}
    assert values["SessionId"] == Text(1, 1024, "^[^\\0]*$")
    assert values["Message"] == Opaque(True)
    assert values["RequestId"] == OneOf((Number(True), Text()))
    assert values["PromptAuthority"] == Choice(("assembled", "preassembly_may_overflow"), is_open=True)
    assert not values["SpawnMode"].is_open


def test_fields_of_a_base_are_described_where_the_base_is() -> None:
    members = read_protocol().types["MaintainContextParams"].members
    assert all(member.doc for member in members)
    assert members[0].doc.startswith("The session")


def test_a_field_without_docstring_is_an_error() -> None:
    with pytest.raises(MissingDocstring, match=r"Undocumented\.size"):
        field_docs(Undocumented, "size")


def test_a_type_without_a_word_in_the_model_is_an_error() -> None:
    with pytest.raises(UnsupportedType, match="BytesType"):
        reader.read_type(Unspeakable)


def test_a_bar_in_a_cell_does_not_break_a_table() -> None:
    assert table(["a"], [["x|y"]]).splitlines()[-1] == "| x\\|y |"
