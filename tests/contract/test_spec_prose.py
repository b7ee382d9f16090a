"""The prose of the specification is complete, and its references lead somewhere."""

import json
import posixpath
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from sidecar.protocol.errors import ERRORS
from sidecar.protocol.lifecycle import HostCapability, Limits
from sidecar.protocol.methods import METHODS

SPEC = Path(__file__).parents[2] / "spec"
SCHEMA = json.loads((SPEC / "schema.json").read_text(encoding="utf-8"))
PAGES = {
    path.relative_to(SPEC).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SPEC.rglob("*.md"))
}
PROSE = {name: text for name, text in PAGES.items() if not text.startswith("<!-- Generated")}
DEFINED = re.compile(r"^- \*\*(CEP-[A-Z]+-\d+)\*\* (\S)", re.MULTILINE)
MENTIONED = re.compile(r"CEP-[A-Z]+-\d+")
ANCHORED = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def clauses() -> list[str]:
    return [match[1] for text in PROSE.values() for match in DEFINED.finditer(text)]


def test_no_clause_id_is_given_twice() -> None:
    assert sorted(set(clauses())) == sorted(clauses())


WITHDRAWN = {"CEP-LOSS-11", "CEP-RECALL-5"}
"""Clauses that hold no longer; their ids are not used again."""


def test_clauses_of_a_topic_are_numbered_from_1_without_gaps() -> None:
    numbers: dict[str, list[int]] = {}
    assert WITHDRAWN.isdisjoint(clauses())
    for clause in sorted({*clauses(), *WITHDRAWN}, key=lambda name: int(name.rpartition("-")[2])):
        topic, _, number = clause.rpartition("-")
        numbers.setdefault(topic, []).append(int(number))
    assert numbers == {topic: list(range(1, len(found) + 1)) for topic, found in numbers.items()}


def test_every_clause_that_is_mentioned_exists() -> None:
    mentioned = {
        clause for name, text in PROSE.items() if name != "README.md" for clause in MENTIONED.findall(text)
    }
    assert mentioned <= set(clauses())


def test_must_and_should_stand_in_clauses_only() -> None:
    for name, text in PROSE.items():
        if name == "README.md":
            continue
        loose = re.sub(r"^- \*\*CEP-.*\n(?:  .*\n)*", "", text, flags=re.MULTILINE)
        assert not re.search(r"\b(MUST|SHOULD|MAY)\b", loose), name


def test_every_method_error_capability_and_limit_is_in_the_prose() -> None:
    text = "\n".join(PROSE.values())
    assert [method.name for method in METHODS if f"`{method.name}`" not in text] == []
    codes = [entry.code for entry in ERRORS]
    assert [code for code in codes if not re.search(rf"(?<![\d-]){code}(?!\d)", text)] == []
    names = (*HostCapability.__args__, *Limits.__struct_encode_fields__)
    assert [name for name in names if name not in text] == []


def test_links_of_a_page_lead_to_files() -> None:
    links = [(name, target) for name, page in PAGES.items() for target in LINK.findall(page)]
    broken = [link for link in links if not (SPEC / link[0]).parent.joinpath(link[1]).is_file()]
    assert broken == []


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = PAGES["README.md"] + PAGES["methods.md"]
    assert [name for name in PAGES if not name.endswith("README.md") and f"({name})" not in listed] == []


def headings(text: str) -> set[str]:
    lines = [line.lower() for line in text.splitlines() if line.startswith("#")]
    return {"".join(re.findall(r"[\w -]", line)).strip().replace(" ", "-") for line in lines}


def test_a_link_into_a_page_leads_to_one_of_its_headings() -> None:
    for name, text in PAGES.items():
        for target, anchor in ANCHORED.findall(text):
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name
            assert page not in PAGES or anchor in headings(PAGES[page]), (name, target, anchor)


def test_a_first_host_needs_about_a_dozen_methods() -> None:
    table = json.loads((SPEC / "protocol.json").read_text(encoding="utf-8"))
    core = [line["name"] for line in table["methods"] if line.get("core")]
    assert len(core) == 12
    assert all(f"[`{name}`]" in PAGES["methods.md"].partition("## All methods")[0] for name in core)


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_type_in_the_method_table_is_in_the_schema() -> None:
    table = json.loads((SPEC / "protocol.json").read_text(encoding="utf-8"))
    names = {line.get(side) for line in table["methods"] for side in ("params", "result")} - {None}
    assert names | {error["data"] for error in table["errors"]} <= set(SCHEMA["$defs"])


TRANSCRIPTS = [path for path in sorted((SPEC / "transcripts").glob("*.jsonl")) if path.stem != "mistakes"]
"""All but the one whose host sends what has no type."""


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name)
def test_a_transcript_has_typed_messages_and_answers_every_request(path: Path) -> None:
    table = {method.name: method for method in METHODS}
    open_requests: dict[tuple[str, object], str | None] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        sender, message = (entry := json.loads(line))["from"], entry["message"]
        check("Envelope", message)
        if "method" in message:
            method = table[message["method"]]
            check(method.params, message.get("params") or {})
            if method.kind == "request":
                open_requests[sender, message["id"]] = method.result
            continue
        other = "server" if sender == "host" else "host"
        result = open_requests.pop((other, message["id"]))
        if "result" in message and result is not None:
            check(result, message["result"])
        elif "error" in message and sender == "server":
            check("ServerError", message["error"])
    assert open_requests == {}


def check(type_name: str, value: object) -> None:
    validator = Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{type_name}"})
    assert [error.message for error in validator.iter_errors(value)] == []
