"""The suite for servers, run on ours and on broken ones."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sidecar.conformance.kit import Violation
from sidecar.conformance.server import SERVER_SUITE
from sidecar.conformance.wire import Message, check_result

PROGRAM = str(Path(sys.executable).with_name("context-sidecar"))
LIMIT_S = 110.0


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "conformance", "server", *arguments], capture_output=True, text=True, timeout=LIMIT_S
    )


def test_a_command_that_is_no_server_is_told_in_one_line() -> None:
    for command in (["/no/such/command"], [sys.executable, "-c", "print('hello')"]):
        done = conformance("--limit", "5", "--", *command)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("also", [{"edits": []}, {"messages": None}])
def test_an_answer_with_both_messages_and_edits_or_neither_is_wrong(also: dict[str, object]) -> None:
    example = Path(__file__).parents[2] / "spec/examples/context/assemble/result.json"
    result = {**json.loads(example.read_text("utf-8")), **also}
    with pytest.raises(Violation, match="Exactly one of `messages` and `edits`"):
        check_result("context/assemble", Message(json.dumps({"id": 1, "result": result}).encode()))


def test_a_known_failure_that_passes_is_an_error(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("lifecycle/set_trace  # it has none\n")
    done = conformance(
        "--only", "lifecycle/set_trace", "--expected-failures", str(known), "--", PROGRAM, "serve"
    )
    assert done.returncode == 1
    assert "remove the entry" in done.stdout


def test_a_known_failure_that_fails_is_a_warning(tmp_path: Path) -> None:
    known, name = tmp_path / "known.txt", tmp_path / "name"
    known.write_text("bad input/errors_say_what_to_do\n")
    name.write_text("bad input/errors_say_what_to_do")
    proxy = (sys.executable, "-m", "tests.conformance.spoiling.proxy", str(name))
    only = ("--only", "errors_say", "--only", "set_trace", "--json", "--", *proxy, PROGRAM, "serve")
    broken = conformance(*only)
    assert (broken.returncode, json.loads(broken.stdout)["counts"]["failed"]) == (1, 1)
    expected = conformance("--expected-failures", str(known), *only)
    assert (expected.returncode, json.loads(expected.stdout)["counts"]["warned"]) == (0, 1)


def test_a_report_for_build_servers_has_a_case_for_each_check(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    done = conformance("--only", "lifecycle/exit", "--junit", str(file), "--", PROGRAM, "serve")
    assert done.returncode == 0
    cases = ElementTree.parse(file).getroot().findall("testcase")
    assert [case.get("name") for case in cases] == ["lifecycle/exit_alone"]


def test_the_list_has_every_check_with_its_rule() -> None:
    listed = json.loads(conformance("--list", "--json").stdout)
    assert [check["name"] for check in listed] == [check.name for check in SERVER_SUITE]
    assert all("CEP-" in check["rule"] for check in listed)


def test_an_unknown_known_failure_is_a_mistake_of_use(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("no/such_check\n")
    done = conformance("--expected-failures", str(known), "--", PROGRAM, "serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no/such_check" in done.stderr


def test_the_configuration_of_who_checks_does_not_decide_about_a_server(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".config" / "context-sidecar"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('plugins.slots.contextEngine = "no-such-engine"\n')
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "CONTEXT_SIDECAR_ENGINE": "no-such-engine"}
    environment.pop("XDG_CONFIG_HOME", None)
    empty, own = (
        subprocess.run(
            [PROGRAM, "conformance", "server", *more, "--only", "exit_alone", "--", PROGRAM, "serve"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
        )
        for more in ((), ("--own-home",))
    )
    assert empty.returncode == 0, empty.stderr
    assert own.returncode == 1
    assert "no-such-engine" in own.stderr
