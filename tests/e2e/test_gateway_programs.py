"""Claude Code, Codex and Qwen Code from their packages, behind the gateway; their model is scripted."""

import asyncio
import base64
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import mcp
import mcp.types
import pytest
from aiohttp import web

from sidecar.gateway.programs import launch
from tests.e2e.gateway_process import IMPATIENT, PATIENT, Running
from tests.e2e.processes_of import children_of
from tests.model_api import Body, Count, ModelApis, Use, bare, prompt_tokens
from tests.npm_packages import installed

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(900)]

LIMIT_S = 400.0
COMMAND = str(Path(sys.executable).with_name("context-sidecar"))
TURNS = 60
DETAIL = "7331 7332 7333 7334"
"""In the result of step 7, and too small a thing for a summary."""


class Program(NamedTuple):
    """A program, and how it is used without a person."""

    name: str
    arguments: list[str]
    environment: dict[str, str]
    tool: str
    path: str

    def use(self, number: int) -> Use:
        """A step whose output is some 1,000 tokens long."""
        shell = f"echo marker of step {number} is QX-4711-{number}; seq -s ' ' {number}000 {number}600"
        named: Body = {"cmd": shell} if self.name == "codex" else {"command": shell}
        named |= {"claude": {"description": "step"}, "qwen": {"is_background": False}}.get(self.name, {})
        return Use(f"{'toolu_' if self.name == 'claude' else 'call_'}{number:04}", self.tool, named)

    def messages(self, body: Body) -> list[Any]:
        """The history of a request as the provider's cache knows it."""
        if self.name == "claude":
            return list(map(bare, body["messages"]))
        return body["messages"] if self.name == "qwen" else body["input"]


CLAUDE = Program(
    "claude",
    ["-p", "Do many steps.", "--allowedTools", "Bash", "--model", "claude-sonnet-4-5"],
    {
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000",
    },
    "Bash",
    "/v1/messages",
)
_OFF = [
    part for name in ("plugins", "remote_plugin", "apps", "plugin_sharing") for part in ("--disable", name)
]
CODEX = Program(
    "codex",
    [
        *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        *("-m", "gpt-5.5", *_OFF, "Do many steps."),
    ],
    {"OPENAI_API_KEY": "sk-none"},
    "exec_command",
    "/v1/responses",
)
QWEN = Program(
    "qwen",
    ["--auth-type", "openai", "--approval-mode", "yolo", "-p", "Do many steps."],
    {"OPENAI_API_KEY": "sk-none", "OPENAI_MODEL": "local"},
    "run_shell_command",
    "/v1/chat/completions",
)
BOTH = pytest.mark.parametrize("program", [CLAUDE, CODEX], ids=lambda program: program.name)


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where the real programs are; they are installed once, outside of the tree."""
    return installed(Path(__file__).parent / "gateway-programs") / ".bin"


def steps(program: Program, turns: int) -> Callable[[Body, int], Use | str]:
    """A model that takes so many steps and ends; it counts those that it sees to have been done."""
    taken = 0

    def script(body: Body, _number: int) -> Use | str:
        nonlocal taken
        if not body.get("tools"):
            return "a title"
        taken += 1
        return program.use(taken) if taken <= turns else "all done"

    return script


def run(
    program: Program, programs: Path, upstream: ModelApis, home: Path, *options: str, watch: Any = None
) -> subprocess.CompletedProcess[str]:
    """Let a program work behind the gateway until it ends."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    environment = environment_of(program, home)
    command = [COMMAND, "run", "--state-dir", str(home / "state"), *PATIENT]
    command += ["--upstream-anthropic", upstream.url, "--upstream-openai", upstream.url, *options]
    started = subprocess.Popen(
        [*command, "--", str(programs / program.name), *program.arguments],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if watch is not None:
        watch(started)
    try:
        said, complained = started.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        started.kill()
        said, complained = started.communicate()
        pytest.fail(f"{program.name} did not end:\n{said[-2000:]}\n{complained[-2000:]}")
    return subprocess.CompletedProcess(command, started.returncode, said, complained)


def environment_of(program: Program, home: Path) -> dict[str, str]:
    """What a program needs, and nothing of this machine's user."""
    passed_on = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**passed_on, "HOME": str(home), **program.environment}


def asked(upstream: ModelApis) -> list[Body]:
    """The requests of the session itself."""
    return [body for body in upstream.requests if body.get("tools")]


def of_session(upstream: ModelApis) -> list[Count]:
    """What the provider counted for the requests of the session itself."""
    return [
        count for body, count in zip(upstream.requests, upstream.counted, strict=True) if body.get("tools")
    ]


def saved(state: Path) -> list[Any]:
    """The rows of `sessions savings`."""
    command = [COMMAND, "sessions", "savings", "--json", "--state-dir", str(state)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return json.loads(shown.stdout)["sessions"]


@BOTH
def test_sixty_turns_past_the_window_stay_valid_fit_and_keep_their_prefix(
    program: Program, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    upstream.script = steps(program, TURNS)
    window = 60_000
    done = run(program, programs, upstream, tmp_path, "--window", str(window))
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert upstream.faults == []
    sent = asked(upstream)
    assert len(sent) == TURNS + 1
    assert all(prompt_tokens(body) < window for body in sent)
    lists = list(map(program.messages, sent))
    extended = [now[: len(before)] == before for before, now in itertools.pairwise(lists)]
    assert extended.count(False) >= 2, "the history must have passed the window several times"
    assert extended.count(False) <= 10
    row = max(saved(tmp_path / "state"), key=lambda row: row["requests"])
    assert row["requests"] == TURNS + 1
    assert row["sent"] == sum(count.prompt for count in of_session(upstream))
    assert row["cacheRead"] == sum(count.cached for count in of_session(upstream))
    assert row["cacheRead"] > 0.85 * row["sent"], "the prefix is found in the provider's cache"
    assert row["wanted"] > 1.3 * row["sent"]
    assert DETAIL not in str(lists[-1])
    assert DETAIL in asyncio.run(_found(tmp_path / "state", tmp_path / "work"))


async def _found(state: Path, folder: Path) -> str:
    """What the recall tools find of step 7, over MCP."""
    arguments = ["mcp", "--state-dir", str(state), "--folder", str(folder)]
    server = mcp.StdioServerParameters(command=COMMAND, args=arguments)
    async with (
        asyncio.timeout(LIMIT_S),
        mcp.stdio_client(server) as streams,
        mcp.ClientSession(*streams) as client,
    ):
        await client.initialize()
        found = await client.call_tool("context_search", {"mode": "search", "query": DETAIL})
        return "".join(part.text for part in found.content if isinstance(part, mcp.types.TextContent))


@BOTH
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hanging"])
def test_a_sidecar_that_fails_in_the_middle_does_not_end_the_program(
    program: Program, number: signal.Signals, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    script = steps(program, 12)
    started: list[subprocess.Popen[str]] = []

    def failing(body: Body, request: int) -> Use | str:
        if request in (4, 8):
            for pid in _sidecars(started[0].pid):
                os.kill(pid, number)
        return script(body, request)

    upstream.script = failing
    done = run(program, programs, upstream, tmp_path, *IMPATIENT, watch=started.append)
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert upstream.faults == []
    assert 1 <= done.stderr.count("context-sidecar: The sidecar") <= 2


@BOTH
def test_a_program_works_without_any_sidecar(
    program: Program, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    upstream.script = steps(program, 4)
    done = run(program, programs, upstream, tmp_path, "--sidecar", "/no/such/program")
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert len(asked(upstream)) == 5
    assert done.stderr.count("The sidecar failed (cannot start /no/such/program") == 1


FAILURES: dict[str, Callable[[], web.StreamResponse | None]] = {
    "429": lambda: web.json_response(
        {"error": {"message": "slow down"}}, status=429, headers={"retry-after": "0"}
    ),
    "500": lambda: web.json_response({"error": {"message": "broken"}}, status=500),
    "529": lambda: web.json_response({"error": {"message": "overloaded"}}, status=529),
    "reset": lambda: None,
}


@BOTH
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_upstream_reaches_the_program_which_tries_again(
    program: Program, failure: str, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    script = steps(program, 4)
    upstream.script = lambda body, number: FAILURES[failure]() if number == 3 else script(body, number)
    done = run(program, programs, upstream, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert len(asked(upstream)) == 6, "the request that failed came once more, from the program"
    assert upstream.bodies[2] == upstream.bodies[3] or program.name == "codex"


@BOTH
def test_a_gateway_that_is_killed_and_comes_back_on_its_port_loses_nothing(
    program: Program, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    script = steps(program, 8)
    state = tmp_path / "state"
    gateways = [Running(state, upstream.url)]

    def killing(body: Body, number: int) -> Use | str:
        if number == 4:
            gateways[-1].process.kill()
            assert gateways[-1].process.wait(LIMIT_S) < 0
            gateways.append(Running(state, upstream.url, "--listen", f"127.0.0.1:{gateways[0].port}"))
        return script(body, number)

    upstream.script = killing
    work = tmp_path / "work"
    work.mkdir()
    environment = environment_of(program, tmp_path)
    start = launch([str(programs / program.name), *program.arguments], environment, gateways[0].port)
    done = subprocess.run(
        start.command,
        cwd=work,
        env=start.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    gateways[-1].close()
    assert gateways[0].process.stderr is not None
    gateways[0].process.stderr.close()
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert upstream.faults == []
    kept = "\n".join(gateways[-1].stored())
    results = [number for number in range(1, 9) if f"QX-4711-{number}" in str(asked(upstream)[-1])]
    assert len(results) >= 7, "the answer on the way was lost, and asked for again"
    assert all(f"marker of step {number} is QX-4711-{number}" in kept for number in results)


def test_two_programs_at_once_share_the_store_and_nothing_else(
    programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    scripts = {CLAUDE.path: steps(CLAUDE, 12), CODEX.path: steps(CODEX, 12)}
    upstream.script = lambda body, number: scripts[CODEX.path if "input" in body else CLAUDE.path](
        body, number
    )
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda program: run(program, programs, upstream, tmp_path), (CLAUDE, CODEX)))
    assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
    assert all("all done" in each.stdout for each in done)
    assert upstream.faults == []
    shown = subprocess.run(
        [COMMAND, "sessions", "list", "--namespace", "gateway", "--json", "--state-dir", tmp_path / "state"],
        capture_output=True, text=True, timeout=LIMIT_S, check=True,
    )  # fmt: skip
    sessions = {row["sessionId"].partition(":")[0]: row for row in json.loads(shown.stdout)["sessions"]}
    assert set(sessions) == {"claude-code", "codex"}
    assert {row["sessionKey"].partition(":")[2] for row in sessions.values()} == {str(tmp_path / "work")}


@BOTH
def test_a_prompt_that_the_provider_finds_too_long_is_made_shorter_unseen(
    program: Program, programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    script = steps(program, 30)
    refused = 0

    def refusing(body: Body, number: int) -> Any:
        nonlocal refused
        if prompt_tokens(body) <= prompt_tokens(upstream.requests[0]) + 12_000:
            return script(body, number)
        refused += 1
        code = {"code": "context_length_exceeded", "message": "prompt is too long"}
        return web.json_response({"type": "error", "error": code}, status=400)

    upstream.script = refusing
    done = run(program, programs, upstream, tmp_path, "--window", "200k")
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert 1 <= refused <= 6
    assert upstream.faults == []


def test_qwen_code_on_chat_completions_works_past_its_window(
    programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    upstream.script = steps(QWEN, 40)
    window = 32_000
    done = run(QWEN, programs, upstream, tmp_path, "--window", str(window))
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert upstream.faults == []
    sent = asked(upstream)
    assert len(sent) == 41
    assert all(prompt_tokens(body) + body["max_tokens"] < window for body in sent)
    lengths = [len(body["messages"]) for body in sent]
    assert sum(now < before for before, now in itertools.pairwise(lengths)) >= 3
    assert DETAIL in asyncio.run(_found(tmp_path / "state", tmp_path / "work"))


def test_codex_goes_on_from_the_engines_compaction(
    programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    program = CODEX._replace(
        arguments=[*CODEX.arguments[:1], "-c", "model_auto_compact_token_limit=16000", *CODEX.arguments[1:]]
    )
    upstream.script = steps(program, 25)
    done = run(program, programs, upstream, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert upstream.faults == []
    assert len(asked(upstream)) == 26, "no compaction reached the model"
    lengths = [len(body["input"]) for body in asked(upstream)]
    assert any(now < before for before, now in itertools.pairwise(lengths))


def test_codexs_own_compressed_requests_are_read_and_rewritten(
    programs: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    """Codex compresses what it sends with a subscription's login; the tokens here are nobody's."""
    upstream.script = steps(CODEX, 25)
    login = tmp_path / ".codex" / "auth.json"
    login.parent.mkdir()
    login.write_text(json.dumps(subscription()))
    work = tmp_path / "work"
    work.mkdir()
    running = Running(tmp_path / "state", upstream.url, "--window", "32k")
    provider = {
        "name": "OpenAI",
        "base_url": f"http://127.0.0.1:{running.port}/v1",
        "wire_api": "responses",
        "requires_openai_auth": True,
    }
    given = ['model_provider="own"']
    given += [f"model_providers.own.{name}={json.dumps(value)}" for name, value in provider.items()]
    done = subprocess.run(
        [str(programs / "codex"), *(part for each in given for part in ("-c", each)), *CODEX.arguments],
        cwd=work,
        env=environment_of(CODEX._replace(environment={}), tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    told = running.close()
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    assert "could not be read" not in told
    encodings = [
        {name.lower(): value for name, value in headers.items()}.get("content-encoding", "")
        for headers in upstream.headers
    ]
    assert encodings[0] == "zstd", "what fits goes upstream as it came"
    assert encodings[-1] == "", "what is rewritten is not packed again"
    lengths = [len(body["input"]) for body in asked(upstream)]
    assert any(now < before for before, now in itertools.pairwise(lengths))
    # With this login Codex sends a member of messages that the published form does not have.
    assert [fault for fault in upstream.faults if "internal_chat_message_metadata" not in fault] == []


def subscription() -> Body:
    """A login as Codex keeps it, with tokens that nobody has signed."""

    def part(value: Body) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    about = {"chatgpt_plan_type": "plus", "chatgpt_account_id": "none", "chatgpt_user_id": "none"}
    claims = {"email": "none@example.com", "exp": 4_102_444_800, "https://api.openai.com/auth": about}
    token = f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.c2ln"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "none", "account_id": "none"}
    return {"auth_mode": "chatgpt", "tokens": tokens, "last_refresh": "2099-01-01T00:00:00Z"}


def _sidecars(pid: int) -> list[int]:
    found: list[int] = []
    for child in children_of(pid):
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes()
        except FileNotFoundError:
            continue
        if b"sidecar.cli.main\0serve" in line:
            found.append(child)
    return found
