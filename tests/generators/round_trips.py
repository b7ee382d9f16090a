"""Sends every example of the specification through the types that generators make of the schema.

`python -m tests.generators.round_trips [--schema FILE] [NAME ...]` fails where a generator refuses the
schema, or where an example does not come back as it was. `null` and absent are alike, and so are two ways to
write one instant. The lock files in the folders here pin the generators; `.generators` caches them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SPEC = ROOT / "spec"
CACHE = ROOT / ".generators"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")

GO_MAIN = """\
// Reads `{"type", "value"}` a line and answers with the value as the generated types pass it on.
package main

import (
	"bufio"
	"encoding/json"
	"os"
)

var types = map[string]func() any{
%s}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var line struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			panic(err)
		}
		made, ok := types[line.Type]
		if !ok {
			out.Encode(map[string]any{"error": "no such type"})
			continue
		}
		value := made()
		if err := json.Unmarshal(line.Value, value); err != nil {
			out.Encode(map[string]any{"error": err.Error()})
			continue
		}
		out.Encode(map[string]any{"value": value})
	}
}
"""


class Case(NamedTuple):
    """One example with the name of its type."""

    place: str
    type: str
    value: Any


class Refused(Exception):
    """Raised when a generator, or the compiler behind it, does not take the schema."""


def cases() -> list[Case]:
    """Every valid example that has a type; of an error also its data, as the type that its code leads to."""
    found: list[Case] = []
    for method in METHODS:
        for path in sorted((SPEC / "examples" / method.name.removeprefix("$/")).glob("*.json")):
            name = method.params if path.stem.startswith("params") else method.result
            if name is not None:
                found.append(Case(str(path.relative_to(SPEC)), name, json.loads(path.read_text("utf-8"))))
    data = {entry.code: entry.data.__name__ for entry in ERRORS}
    for path in sorted((SPEC / "examples/errors").glob("*.json")):
        error, place = json.loads(path.read_text("utf-8")), str(path.relative_to(SPEC))
        found.append(Case(place, "ServerError", error))
        found.append(Case(f"{place}: data", data[error["code"]], error["data"]))
    return found


def go_jsonschema(schema: Path, work: Path) -> list[str]:
    """The command of a program with the types of go-jsonschema."""
    made = work / "types.go"
    run(["go", "tool", "go-jsonschema", "-p", "main", "-o", str(made), str(schema)], HERE / "go-jsonschema")
    return go_program(schema, work)


def quicktype(schema: Path, work: Path) -> list[str]:
    """The command of a program with the types of quicktype, in Go, which loses what a type does not name."""
    tools = CACHE / "quicktype"
    tools.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "quicktype" / name, tools / name)
    installed = tools / "node_modules/.package-lock.json"
    if (
        not installed.exists()
        or installed.stat().st_mtime < (HERE / "quicktype/package-lock.json").stat().st_mtime
    ):
        run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], tools)
    options = ["--lang", "go", "--package", "main", "--src-lang", "schema"]
    made = str(work / "types.go")
    run(["node_modules/.bin/quicktype", *options, "-o", made, "--quiet", f"{schema}#/$defs/"], tools)
    return go_program(schema, work)


def typify(schema: Path, work: Path) -> list[str]:
    """The command of a program with the types of typify."""
    target = CACHE / "typify"
    environment = {"SCHEMA": str(schema), "CARGO_TARGET_DIR": str(target)}
    run(["cargo", "build", "--quiet", "--locked"], HERE / "typify", environment)
    program = work / "round-trips"
    shutil.copy(target / "debug/round-trips", program)
    return [str(program)]


GENERATORS: dict[str, Callable[[Path, Path], list[str]]] = {
    "go-jsonschema": go_jsonschema,
    "quicktype": quicktype,
    "typify": typify,
}


def go_program(schema: Path, work: Path) -> list[str]:
    """The command of a program around `types.go`."""
    known = {name.lower(): name for name in json.loads(schema.read_text("utf-8"))["$defs"]}
    made = re.findall(r"^type (\w+) ", (work / "types.go").read_text("utf-8"), re.MULTILINE)
    rows = [
        f'\t"{known[name.lower()]}": func() any {{ return new({name}) }},\n'
        for name in made
        if name.lower() in known
    ]
    (work / "main.go").write_text(GO_MAIN % "".join(rows))
    (work / "go.mod").write_text("module round-trips\n\ngo 1.24\n")
    run(["go", "build", "-o", "round-trips", "."], work)
    return [str(work / "round-trips")]


def run(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command to its end.

    Raises:
        Refused: it fails.
    """
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if done.returncode:
        raise Refused(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()[-1500:]}")


def plain(value: Any) -> Any:
    """The value without members that are `null`, and with one spelling for each instant."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and INSTANT.fullmatch(value):
        return datetime.fromisoformat(value)
    return value


def losses(command: Sequence[str], sent: Sequence[Case]) -> list[str]:
    """What did not come back as it was, one line each."""
    lines = "".join(json.dumps({"type": case.type, "value": case.value}) + "\n" for case in sent)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    found: list[str] = []
    for case, line in zip(sent, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        if "error" in answer:
            found.append(f"{case.place} as {case.type}: {answer['error']}")
        elif plain(answer["value"]) != plain(case.value):
            found.append(f"{case.place} as {case.type}: came back as {json.dumps(answer['value'])[:300]}")
    return found


def check(name: str, schema: Path) -> list[str]:
    """What one generator makes wrong of the schema, one line each."""
    work = CACHE / f"work-{name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        return losses(GENERATORS[name](schema.resolve(), work), cases())
    except Refused as refused:
        return [str(refused)]


def spoilt(change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the schema in which one thing is as a generator cannot have it."""
    document = json.loads((SPEC / "schema.json").read_text("utf-8"))
    change(document["$defs"])
    CACHE.mkdir(exist_ok=True)
    path = CACHE / "spoilt.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _closed_enumeration(types: dict[str, Any]) -> None:
    types["ContentKind"] = {"title": "ContentKind", "type": "string", "enum": ["system", "summary"]}


def _inlined_message(types: dict[str, Any]) -> None:
    branches = [{"required": ["role"]}, {"required": ["type"]}]
    types["IngestContextParams"]["properties"]["message"] = {"type": "object", "anyOf": branches}


def _conditions(types: dict[str, Any]) -> None:
    busy = {"properties": {"data": {"$ref": "#/$defs/BusyData"}}}
    types["ServerError"]["allOf"] = [{"if": {"properties": {"code": {"const": 1007}}}, "then": busy}]


def _second_union(types: dict[str, Any]) -> None:
    types["ProgressToken"] = {**types["RequestId"], "title": "ProgressToken"}
    types["ProgressParams"]["properties"]["token"] = {"$ref": "#/$defs/ProgressToken"}


def _narrow_error(types: dict[str, Any]) -> None:
    types["ServerError"]["properties"]["data"] = {
        "type": "object",
        "properties": {"hint": {"type": "string"}},
    }


BREAKS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "an enumeration that does not take new values": ("typify", _closed_enumeration),
    "a message that is a struct of role and type": ("quicktype", _inlined_message),
    "two unions that are the same": ("quicktype", _second_union),
    "a condition": ("typify", _conditions),
    "an error whose data has a few members": ("go-jsonschema", _narrow_error),
}
"""What the schema is kept from, by the generator that fails on it."""


def main() -> int:
    """Exit status: 1 where a generator makes anything wrong of the schema, else 0."""
    parser = ArgumentParser(description="Send the examples through the types that generators make.")
    parser.add_argument("generators", nargs="*", choices=[[], *GENERATORS], help="default: all")
    parser.add_argument("--schema", type=Path, default=SPEC / "schema.json")
    parser.add_argument(
        "--broken", action="store_true", help="see that each kind of mistake is caught instead"
    )
    options = parser.parse_args()
    failed = False
    if options.broken:
        for what, (name, change) in BREAKS.items():
            caught = check(name, spoilt(change))
            failed = failed or not caught
            print(f"{what}: {f'caught by {name}' if caught else f'NOT caught by {name}'}", flush=True)
        return int(failed)
    for name in options.generators or GENERATORS:
        problems = check(name, options.schema)
        failed = failed or bool(problems)
        print(f"{name}: {len(cases()) - len(problems)} of {len(cases())}", flush=True)
        for problem in problems:
            print(f"  {problem}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
