import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.cli.commands import ENTRIES
from sidecar.cli.engines import WHAT
from sidecar.client import SidecarClient
from sidecar.engine.sources import BUILT_IN
from sidecar.origin import install_command
from tests.client_kit import LIMIT_S, PROGRAM, assistant, run_cli, user, with_sidecar, within_limit

QUESTION = b'{"role": "user", "content": "caf\\u00e9 \\ud83d"}'


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A state directory with one session of two messages."""

    async def tell(client: SidecarClient) -> None:
        await client.ingest("talk", QUESTION, message_id="m1")
        await client.ingest("talk", assistant("fine"), message_id="m2")

    with_sidecar(tmp_path, tell, engine="full")
    return tmp_path


def test_help_lists_every_command(tmp_path: Path) -> None:
    result = run_cli("--help", state_dir=tmp_path)
    assert result.returncode == 0
    for name, entry in ENTRIES.items():
        assert name in result.stdout
        assert entry.summary in " ".join(result.stdout.split())


def test_help_loads_nothing_that_only_commands_need() -> None:
    script = (
        "import sys; sys.argv = ['context-sidecar', '--help']\n"
        "from sidecar.cli.main import main\n"
        "main()\n"
        "heavy = {'pydantic', 'pygls', 'lsprotocol', 'rich', 'asyncio', 'apsw'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def help_texts() -> dict[str, str]:
    """What each command prints with `--help`, by its name; one process prints them all."""
    script = (
        "import contextlib, io, json, sys\n"
        "from sidecar.cli.main import main\n"
        "printed = {}\n"
        f"for name in {list(ENTRIES)!r}:\n"
        "    sys.argv = ['context-sidecar', name, '--help']\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "        try:\n"
        "            code = main()\n"
        "        except SystemExit as end:\n"
        "            code = end.code\n"
        "    printed[name] = text.getvalue() if not code else f'exit {code}'\n"
        "print(json.dumps(printed))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "120"},
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_help(name: str, help_texts: dict[str, str]) -> None:
    assert help_texts[name].startswith(f"Usage: context-sidecar {name}")


@pytest.mark.parametrize("name", ["sessions", "memory", "db", "engines", "config", "conformance"])
def test_no_summary_of_a_command_is_cut(name: str, help_texts: dict[str, str]) -> None:
    assert [line for line in help_texts[name].splitlines()[1:] if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("run", "aiohttp", "http"), ("gateway", "aiohttp", "http"), ("mcp", "mcp", "mcp")],
)
def test_a_missing_package_is_named_with_what_installs_it(command: str, package: str, extra: str) -> None:
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"sys.argv = ['context-sidecar', {command!r}, *(['true'] if {command!r} == 'run' else [])]\n"
        "from sidecar.cli.main import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == f"context-sidecar: the package {package} is missing; install it with: {install_command(extra)}\n"
    )


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert __version__ in run_cli("--version", state_dir=tmp_path).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("doctor", "--nothing"),
        ("sessions", "show"),
        ("replay", "no-such-file.jsonl"),
        ("demo", "--budget", "0"),
        ("demo", "--budget", "many"),
        ("config", "show", "--config", "no-such-file.toml"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_two(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run_cli(*arguments, state_dir=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("context-sidecar")
    assert "--help" in result.stderr


def test_doctor_is_content_with_a_fresh_installation(tmp_path: Path) -> None:
    result = run_cli("doctor", "--json", state_dir=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 0
    assert found["ok"] is True
    assert {"start", "engine", "store"} <= {check["name"] for check in found["checks"]}


def test_doctor_names_an_engine_that_does_not_exist(tmp_path: Path) -> None:
    result = run_cli("doctor", "--engine", "nope", "--json", state_dir=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 1
    assert found["checks"][0]["name"] == "engine"
    assert "nope" in found["checks"][0]["message"]
    assert found["checks"][0]["fix"]


def test_doctor_names_a_damaged_store(tmp_path: Path) -> None:
    (tmp_path / "context.db").write_bytes(b"this is no database" * 100)
    result = run_cli("doctor", state_dir=tmp_path)
    assert result.returncode == 1
    assert "WRONG" in result.stdout
    assert "store" in result.stdout
    assert (tmp_path / "context.db").read_bytes() == b"this is no database" * 100


def test_engines_are_listed_with_the_selected_one(tmp_path: Path) -> None:
    engines = json.loads(run_cli("engines", "list", "--json", state_dir=tmp_path).stdout)["engines"]
    by_id = {engine["id"]: engine for engine in engines}
    assert {"legacy", "full", "default"} <= set(by_id)
    assert [engine["id"] for engine in engines if engine["active"]] == ["default"]
    assert "full" in run_cli("engines", "list", state_dir=tmp_path).stdout


def test_sessions_are_listed_by_namespace(stored: Path) -> None:
    entry = json.loads(run_cli("sessions", "list", "--json", state_dir=stored).stdout)["sessions"][0]
    assert (entry["sessionId"], entry["messageCount"], entry["messageFormat"]) == ("talk", 2, "openai")
    other = run_cli("sessions", "list", "--json", "--namespace", "other", state_dir=stored)
    assert json.loads(other.stdout) == {"namespace": "other", "sessions": []}


def test_the_state_directory_can_be_named(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    result = run_cli("sessions", "list", "--json", "--state-dir", str(stored), state_dir=elsewhere)
    assert len(json.loads(result.stdout)["sessions"]) == 1


def test_a_session_is_shown_with_its_newest_messages(stored: Path) -> None:
    shown = json.loads(run_cli("sessions", "show", "talk", "--last", "1", "--json", state_dir=stored).stdout)
    assert shown["session"]["turnCount"] == 1
    assert [message["messageId"] for message in shown["messages"]] == ["m2"]
    assert "fine" in run_cli("sessions", "show", "talk", state_dir=stored).stdout


def test_an_export_is_byte_for_byte(stored: Path, tmp_path: Path) -> None:
    lines = run_cli("sessions", "export", "talk", state_dir=stored).stdout.splitlines()
    assert lines[0].encode() == QUESTION
    target = tmp_path / "export.json"
    run_cli("sessions", "export", "talk", "--json", "--out", str(target), state_dir=stored)
    document = json.loads(target.read_text(encoding="utf-8"))
    assert [message["messageId"] for message in document["messages"]] == ["m1", "m2"]
    assert QUESTION in target.read_bytes()


def test_a_session_is_deleted_once(stored: Path) -> None:
    first = run_cli("sessions", "delete", "talk", "--yes", "--json", state_dir=stored)
    assert (first.returncode, json.loads(first.stdout)) == (0, {"deleted": True})
    assert run_cli("sessions", "delete", "talk", "--yes", state_dir=stored).returncode == 1
    shown = run_cli("sessions", "show", "talk", state_dir=stored)
    assert (shown.returncode, len(shown.stderr.splitlines())) == (1, 1)


def test_nothing_is_deleted_without_a_yes(stored: Path) -> None:
    assert run_cli("sessions", "delete", "talk", state_dir=stored).returncode != 0
    assert run_cli("sessions", "show", "talk", state_dir=stored).returncode == 0


def test_config_shows_what_is_in_force(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[limits]\ndefaultTokenBudget = 9000\n[store]\nurl = "postgresql://me:sesame@db/x"\n'
        '[plugins.entries.http.config]\nurl = "http://db/"\napiKey = "sesame"\n'
        'headers = {Cookie = "sesame"}\n',
        encoding="utf-8",
    )
    result = run_cli("config", "show", "--json", "--config", str(file), state_dir=tmp_path)
    values = json.loads(result.stdout)
    assert values["limits"]["defaultTokenBudget"] == 9000
    assert values["stateDir"] == str(tmp_path)
    assert "sesame" not in result.stdout
    assert (
        "limits.defaultTokenBudget = 9000"
        in run_cli("config", "show", "--config", str(file), state_dir=tmp_path).stdout
    )


SECRETS = """
[store]
kind = "postgres"
url = "host=db password=sesame dbname=x"
[model]
name = "m"
baseUrl = "https://models.example/v1?api_key=sesame"
apiKey = "sesame"
[episodes]
enabled = true
backend = "webhook"
url = "https://hooks.example/in?token=sesame"
secret = "sesame"
[plugins.entries.http.config]
url = "https://memory.example/?key=sesame"
[plugins.entries."some engine".config]
accessToken = "sesame"
tables = [{ password = "sesame", size = 3 }, { note = "\\u007f" }]
"""


def test_config_show_prints_a_configuration_without_its_secrets(tmp_path: Path) -> None:
    file = tmp_path / ("deep" * 30) / "config.toml"
    file.parent.mkdir()
    file.write_text(SECRETS, encoding="utf-8")
    shown = run_cli("config", "show", "--config", str(file), state_dir=tmp_path, env={"COLUMNS": "80"}).stdout
    values = tomllib.loads(shown)
    assert "sesame" not in shown
    assert values["plugins"]["entries"]["some engine"]["config"]["tables"] == [
        {"password": "***", "size": 3},
        {"note": "\x7f"},
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[limits]\nmaxInFlight = 0\n", "maxInFlight"),
        ("[limits\n", "configuration file"),
        ("[plugins.slots]\ncontextEngine = 'nope'\n", "nope"),
        ("[plugins.entries.default.config]\nsummaryTokens = 'many'\n", "plugins.entries.default.config"),
    ],
)
def test_a_wrong_configuration_is_told_with_its_place(text: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    result = run_cli("config", "validate", "--json", "--config", str(file), state_dir=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 1
    assert found["ok"] is False
    assert word in found["errors"][0]


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("colour = 'blue'\n", encoding="utf-8")
    result = run_cli("config", "validate", "--config", str(file), state_dir=tmp_path)
    assert result.returncode == 0
    assert "colour" in result.stderr


def test_the_generated_files_are_written_and_checked(tmp_path: Path) -> None:
    assert run_cli("schema", "--check", "--out", str(tmp_path), state_dir=tmp_path).returncode == 1
    assert run_cli("schema", "--out", str(tmp_path), state_dir=tmp_path).returncode == 0
    assert run_cli("schema", "--check", "--out", str(tmp_path), state_dir=tmp_path).returncode == 0
    json.loads((tmp_path / "spec" / "schema.json").read_text(encoding="utf-8"))


def test_a_sidecar_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[limits]\nmaxInFlight = 0\n", encoding="utf-8")
    result = run_cli("engines", "list", "--config", str(file), state_dir=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert "maxInFlight" in result.stderr


def test_user_messages_are_not_taken_for_markup(tmp_path: Path) -> None:
    async def tell(client: SidecarClient) -> None:
        await client.ingest("s", user("[bold]x[/nothing]"))

    with_sidecar(tmp_path, tell, engine="full")
    assert "[bold]x[/nothing]" in run_cli("sessions", "show", "s", state_dir=tmp_path).stdout


def test_serve_takes_the_engine_and_the_state_directory_from_its_command_line(tmp_path: Path) -> None:
    state = tmp_path / "named"
    command = (PROGRAM, "serve", "--engine", "full", f"--state-dir={state}")

    async def engine(client: SidecarClient) -> str:
        await client.ingest("talk", user("hello"))
        return client.engine.id

    async def run() -> str:
        async with SidecarClient.start(command) as client:
            return await engine(client)

    assert within_limit(run()) == "full"
    assert (state / "context.db").exists()


def test_memory_of_a_session_that_is_not_there_is_a_failure(stored: Path) -> None:
    missing = run_cli("memory", "show", "nope", state_dir=stored)
    assert missing.returncode == 1
    assert "no session 'nope'" in missing.stderr
    there = run_cli("memory", "show", "talk", state_dir=stored)
    assert (there.returncode, "Nothing was injected" in there.stderr) == (0, True)


def test_every_built_in_engine_is_described(tmp_path: Path) -> None:
    assert set(WHAT) == set(BUILT_IN)
    shown = run_cli("engines", "list", state_dir=tmp_path).stdout
    assert all(what in shown for what in WHAT.values())
