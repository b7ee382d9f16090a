"""An answer leaves only after the disk has the message: shown by the system calls that the process makes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.sidecar_host import COMMAND, LIMIT_S
from tests.missing_programs import program

NEEDLE = "needle-7f3a"
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)")


class Call(NamedTuple):
    """One recorded system call, by the order in which the calls returned."""

    name: str
    line: str


def recorded(folder: Path, requests: list[dict[str, object]]) -> list[Call]:
    """The calls that write or sync while the sidecar answers the requests, one after the other."""
    log = folder / "calls.txt"
    traced = [program("strace"), "-f", "-y", "-s", "8192", "-o", str(log)]
    traced += ["-e", "trace=fsync,fdatasync,pwrite64,write,writev", *COMMAND]
    process = subprocess.Popen(
        traced,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "CONTEXT_SIDECAR_STATE_DIR": str(folder / "state")},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        for request in requests:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "result" in answer, answer
        process.stdin.close()
        process.stdout.read()
        process.wait(LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(LIMIT_S)
        process.stdout.close()
    calls: list[Call] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if (found := CALL.match(line)) and "unfinished" not in line:
            calls.append(Call(found[1], line))
    return calls


def request(id: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("context/ingest", {"message": {"role": "user", "content": NEEDLE}}),
        ("context/ingestBatch", {"messages": [{"role": "user", "content": NEEDLE}]}),
        ("context/commitTurn", {"messages": [{"role": "user", "content": NEEDLE}], "advancementKey": "k"}),
        ("context/bootstrap", {"messages": [{"role": "user", "content": NEEDLE}]}),
    ],
    ids=["ingest", "ingestBatch", "commitTurn", "bootstrap"],
)
def test_the_log_is_synced_between_the_last_write_of_a_message_and_its_answer(
    tmp_path: Path, method: str, params: dict[str, object]
) -> None:
    options = {"contextEngine": {"engine": "full"}}
    calls = recorded(
        tmp_path,
        [
            request(1, "initialize", capabilities={}, initializationOptions=options),
            request(2, method, sessionId="s", **params),
        ],
    )
    answered = next(i for i, c in enumerate(calls) if c.name.startswith("write") and '"id\\":2,' in c.line)
    # What is written behind a commit, such as index terms, may come before its answer and is synced later.
    writes = [i for i, c in enumerate(calls[:answered]) if c.name == "pwrite64" and "-wal>" in c.line]
    kept = max(i for i in writes if NEEDLE in calls[i].line)
    synced = [i for i, c in enumerate(calls) if c.name in ("fsync", "fdatasync") and "-wal>" in c.line]
    assert any(kept < i < answered for i in synced), "the answer left before the log was synced"
