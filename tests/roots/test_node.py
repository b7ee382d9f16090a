"""With Node alone, the sidecar and the plugins install with one command each, in real hosts."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.processes_of import until
from tests.model_api import ModelApis
from tests.roots.conftest import NOWHERE
from tests.roots.debian import CACHE, Root

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600)]

SIDECAR = "context-sidecar"
REMEMBER = "The code word is heliotrope."
ASK = "What was the code word?"


@pytest.fixture
def installed(node: Root) -> Root:
    """A Debian in which the user has run the one command of README's Install."""
    command = f"npm install --global --no-audit --no-fund {NOWHERE} /dist/*.tgz"
    node.run("sh", "-c", command)
    return node


@pytest.fixture
def model() -> Iterator[ModelApis]:
    with ModelApis() as apis:
        yield apis


def real(root: Root, name: str, program: str) -> str:
    """A real host that its own tests have installed from npm: the path of a program of it."""
    folder = CACHE / name
    assert (folder / "complete").is_file(), f"{name} is missing: `make host-roots` installs it"
    return root.show(folder, f"/opt/{name}") + f"/node_modules/{program}"


def provider(model: ModelApis, **members: object) -> dict[str, object]:
    """A provider of one model, as both OpenClaw and pi configure it."""
    entry = {"id": "scripted-1", "contextWindow": 64_000, "maxTokens": 1024, **members}
    settings = {
        "baseUrl": f"{model.url}/v1",
        "apiKey": "none",
        "api": "openai-completions",
        "models": [entry],
    }
    return {"providers": {"scripted": settings}}


def stored(root: Root, state_dir: str) -> int:
    """How many messages the sidecar has kept there."""
    shown = json.loads(root.run(SIDECAR, "db", "stats", "--json", "--state-dir", state_dir))
    return sum(space["messages"] for space in shown["namespaces"])


def test_npx_runs_the_demo_and_the_installed_program_serves(node: Root) -> None:
    names = ("context-sidecar-[0-9]*.tgz", "context-sidecar-linux-x64-*.tgz")
    packages = " ".join(f"--package=$(ls /dist/{name})" for name in names)
    assert "What to type next" in node.run("sh", "-c", f"npx --yes {NOWHERE} {packages} {SIDECAR} demo")
    node.run("sh", "-c", f"npm install --global --no-audit --no-fund {NOWHERE} /dist/*.tgz")
    request = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    answer = node.run("sh", "-c", f"echo '{request}' | {SIDECAR} serve")
    assert '"result"' in answer
    assert "default answered a turn" in node.run(SIDECAR, "doctor")


def test_pi_takes_its_context_from_the_build(installed: Root, model: ModelApis) -> None:
    pi = real(installed, "pi-0.87.1", ".bin/pi")
    installed.write("/root/.pi/agent/models.json", json.dumps(provider(model)))
    installed.run(pi, "install", "/plugins/pi", PI_OFFLINE="1")
    turn = (pi, "--provider", "scripted", "--model", "scripted-1")
    installed.run(*turn, "--print", REMEMBER, PI_OFFLINE="1")
    installed.run(*turn, "--continue", "--print", ASK, PI_OFFLINE="1")
    assert REMEMBER in str(model.requests[-1]["messages"])
    assert stored(installed, "/root/.pi/agent/context-sidecar") == 4


def test_openclaw_takes_its_context_from_the_build(installed: Root, model: ModelApis) -> None:
    openclaw = real(installed, "openclaw-2026.9.6", ".bin/openclaw")
    details = {"name": "Scripted", "reasoning": False, "input": ["text"]}
    details["cost"] = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    defaults = {"model": {"primary": "scripted/scripted-1"}, "workspace": "/root/work", "skipBootstrap": True}
    settings = {"models": provider(model, **details), "agents": {"defaults": defaults}}
    installed.write("/root/.openclaw/openclaw.json", json.dumps(settings | {"gateway": {"mode": "local"}}))
    options = ("--force", "--accept-capabilities")
    installed.run(openclaw, "plugins", "install", "-l", "/plugins/openclaw", *options)
    for said in (REMEMBER, ASK):
        installed.run(openclaw, "agent", "--local", "--session-key", "agent:main:k", "-m", said)
    assert REMEMBER in str(model.requests[-1]["messages"])
    assert stored(installed, "/root/.openclaw/context-sidecar") == 4


def test_vs_code_starts_the_build_when_a_transcript_is_opened(installed: Root) -> None:
    server = ("node", real(installed, "code-server-4.100.3", "code-server/out/node/entry.js"))
    installed.run(*server, "--install-extension", "/plugins/vscode/context-sidecar.vsix")
    installed.write("/root/work/session.jsonl", json.dumps({"role": "user", "content": REMEMBER}) + "\n")
    options = ("--auth=none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust")
    command = installed.command(*server, "--bind-addr=127.0.0.1:0", *options, "/root/work")
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as editor, ExitStack() as ended:
        ended.callback(editor.kill)
        assert editor.stdout is not None
        line = next(line for line in editor.stdout if "HTTP server listening on" in line)
        open_file = '[["openFile","vscode-remote:///root/work/session.jsonl"]]'
        url = f"{line.split()[-1]}?folder=/root/work&payload={open_file}"
        profile = f"--user-data-dir={installed.upper.parent / 'browser'}"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
        browser = ["chromium", *options, profile, url]
        page = ended.enter_context(subprocess.Popen(browser, stderr=subprocess.DEVNULL))
        ended.callback(page.kill)
        state = installed.inside("/root/.local/state/context-sidecar")
        until(lambda: any(state.glob("*.db")), "the extension started no sidecar")
