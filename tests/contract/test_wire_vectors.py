"""Our server answers the byte streams of the specification as they say, and each names clauses that exist."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SPEC = Path(__file__).parents[2] / "spec"
VECTORS = sorted((SPEC / "vectors" / "wire").glob("*.json"))
SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")
LIMIT_S = 60
_FRAME = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def stream(pieces: list[Any]) -> bytes:
    texts = [piece if isinstance(piece, str) else piece["repeat"] * piece["times"] for piece in pieces]
    return "".join(texts).encode("latin-1")


def messages(output: bytes, *, lines: bool) -> list[dict[str, Any]]:
    if lines:
        return [json.loads(line) for line in output.splitlines()]
    found: list[dict[str, Any]] = []
    while output:
        head = _FRAME.match(output)
        assert head is not None, output[:200]
        end = head.end() + int(head[1])
        found.append(json.loads(output[head.end() : end]))
        output = output[end:]
    return found


def in_short(response: dict[str, Any]) -> dict[str, Any]:
    error = response.get("error")
    return {"id": response["id"]} if error is None else {"id": response["id"], "code": error["code"]}


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_stream_is_answered_as_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_SIDECAR_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(SPEC.parent))
    vector = read(path)
    done = subprocess.run(SERVE, input=stream(vector["stream"]), capture_output=True, timeout=LIMIT_S)
    said = messages(done.stdout, lines=path.stem.startswith("lines"))
    replies = [in_short(message) for message in said if "method" not in message]
    assert sorted(map(json.dumps, replies)) == sorted(map(json.dumps, vector["replies"])), done.stderr
    assert done.returncode == vector["status"]


def test_vectors_name_clauses_that_exist() -> None:
    prose = "".join(page.read_text(encoding="utf-8") for page in SPEC.rglob("*.md"))
    named = {clause for path in VECTORS for clause in read(path)["clauses"]}
    assert [clause for clause in sorted(named) if f"**{clause}**" not in prose] == []
