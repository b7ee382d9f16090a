"""Only connections of editors pay for what editors get."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidecar.origin import install_command
from tests.e2e.editor import COMMAND, MEMORY, TREES, Editor, Json
from tests.wire.harness import LIMIT_S, ServerProcess, notification, request

EDITOR_LIBRARIES = ("pygls", "lsprotocol", "cattrs", "attr")
HEAVY = (*EDITOR_LIBRARIES, "pydantic")
IMPORT_TIMES = {"PYTHONPROFILEIMPORTTIME": "1"}
WITHOUT_PYGLS = (
    sys.executable,
    "-c",
    "import sys; sys.modules['pygls'] = None; "
    "sys.argv = ['context-sidecar', 'serve']; from sidecar.cli.main import main; sys.exit(main())",
)


def imported(log: str) -> set[str]:
    """Top-level names of the modules that `-X importtime` lists."""
    rows = (line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:"))
    return {row.partition(".")[0] for row in rows}


def modules_of_a_handshake(capabilities: Json) -> set[str]:
    with ServerProcess(COMMAND, env=IMPORT_TIMES) as server:
        params = {"processId": None, "capabilities": capabilities}
        assert "result" in server.initialize(params)
        server.say(request(1, "shutdown"), notification("exit"))
        assert server.exit_code() == 0
        found = imported(server.errors())
    assert "sidecar" in found
    return found


def test_help_imports_nothing_heavy() -> None:
    from os import environ

    ran = subprocess.run(
        [COMMAND[0], "--help"],
        capture_output=True,
        env={**environ, **IMPORT_TIMES},
        timeout=LIMIT_S,
        check=True,
    )
    found = imported(ran.stderr.decode())
    assert "sidecar" in found
    assert not found & set(HEAVY)


@pytest.mark.parametrize(
    "capabilities", [{}, {"window": {"workDoneProgress": True}}, {"textDocument": None}], ids=str
)
def test_a_plain_handshake_imports_nothing_heavy(capabilities: Json) -> None:
    assert not modules_of_a_handshake(capabilities) & set(HEAVY)


@pytest.mark.parametrize("capabilities", [TREES, {"textDocument": {}}], ids=["trees", "empty"])
def test_an_editor_s_handshake_imports_pygls(capabilities: Json) -> None:
    assert {"pygls", "lsprotocol"} <= modules_of_a_handshake(capabilities)


def test_without_the_extra_the_log_says_what_to_install() -> None:
    with ServerProcess(WITHOUT_PYGLS) as server:
        params = {"processId": None, "capabilities": TREES, "initializationOptions": MEMORY}
        server.say(request(0, "initialize", params))
        told, answer = server.read(), server.read()
        assert told["method"] == "window/logMessage"
        assert told["params"]["type"] == 2
        assert install_command("lsp") in told["params"]["message"]
        assert list(answer["result"]["capabilities"]) == ["experimental"]
        message = {"role": "user", "content": "hi"}
        server.say(request(1, "context/ingest", {"sessionId": "s", "message": message}))
        assert server.answer(1)["result"]["ingested"] is True
        server.say(request(2, "textDocument/documentSymbol", {"textDocument": {"uri": "file:///a"}}))
        assert server.answer(2)["error"]["code"] == -32601
        server.say(request(3, "shutdown"), notification("exit"))
        assert server.exit_code() == 0
        assert "Traceback" not in server.errors()


def test_what_pygls_logs_shows_nothing_of_the_handshake() -> None:
    """pygls writes the params of initialize to its log."""
    members = {"rootUri": "file:///secret", "workspaceFolders": [{"uri": "file:///secret", "name": "secret"}]}
    with Editor(members=members, command=(*COMMAND, "--log-level", "debug")) as editor:
        uri = editor.open('{"role": "user", "content": "a secret"}', "file:///secret-name.jsonl")
        assert len(editor.symbols(uri)) == 1
        assert editor.leave() == 0
        assert "secret" not in editor.server.errors()
