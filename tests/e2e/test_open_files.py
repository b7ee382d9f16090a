"""Where a process may open no more files, it says so, and nothing hangs."""

import json
import os
import resource
import subprocess
from pathlib import Path

from sidecar.cli.own_sidecar import own_command
from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import LIMIT_S, Host, Params, Refused

FEW = range(8, 32)
"""Limits from which on the server starts at all; each lets it get a little further."""
NOT_INITIALIZED, STORE_UNAVAILABLE = -32002, 1006
SESSION = {"sessionId": "s"}
MESSAGE = {"role": "user", "content": "hello"}
CALLS: tuple[tuple[str, Params], ...] = (
    ("context/assemble", {**SESSION, "tokenBudget": 1000}),
    ("context/commitTurn", {**SESSION, "advancementKey": "k", "messages": [MESSAGE]}),
    ("context/compact", {**SESSION, "force": True, "tokenBudget": 1000}),
    ("context/explain", SESSION),
    ("session/export", SESSION),
    ("tools/call", {**SESSION, "name": "context_search", "arguments": {"mode": "search", "query": "hello"}}),
)


def _run(command: str, files: int, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """One run of a command with few files; it ends by itself, or the test fails."""
    return subprocess.run(
        ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *own_command(command)],
        input=given,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)},
        timeout=LIMIT_S,
        check=False,
    )


def test_a_server_that_may_open_no_more_files_names_the_limit_as_the_cause(tmp_path: Path) -> None:
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}}
    ingest = {"method": "context/ingest", "params": {**SESSION, "message": MESSAGE}}
    requests = f"{json.dumps(initialize)}\n{json.dumps({'jsonrpc': '2.0', 'id': 1, **ingest})}\n"
    for files in FEW:
        served = _run("serve", files, tmp_path / str(files), requests)
        answers = {answer["id"]: answer for answer in map(json.loads, served.stdout.splitlines())}
        if "result" in answers[0]:
            break
        error = answers[0]["error"]
        codes = [error["code"], answers[1]["error"]["code"]]
        assert codes == [STORE_UNAVAILABLE, NOT_INITIALIZED], (files, served)
        assert "too many files are open" in error["message"], files
        assert "ulimit -n" in error["data"]["hint"] and error["data"]["retryable"], files
    assert files > FEW[1], "the server needs so few files that nothing was tried"


def test_a_server_that_runs_out_of_files_later_goes_on_as_soon_as_there_are_some(
    start_host: StartHost,
) -> None:
    host = start_host()
    host.call("context/ingest", **SESSION, message=MESSAGE)
    pid = host.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (_open_files(pid), before[1]))
    codes = {method: _code(host, method, params) for method, params in CALLS}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert set(codes.values()) <= {None, STORE_UNAVAILABLE}, codes
    assert STORE_UNAVAILABLE in codes.values()
    assert {_code(host, method, params) for method, params in CALLS} == {None}


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _code(host: Host, method: str, params: Params) -> int | None:
    """The code of the error that a call is answered with, `None` for a result."""
    try:
        host.call(method, **params)
    except Refused as refused:
        return refused.code
    return None


def test_doctor_says_that_too_many_files_are_open_and_ends(tmp_path: Path) -> None:
    for files in FEW:
        ran = _run("doctor", files, tmp_path / str(files))
        if ran.returncode == 0:
            break
        assert "too many" in f"{ran.stdout}{ran.stderr}".lower(), (files, ran)
    assert files > FEW[1], "doctor needs so few files that nothing was tried"
