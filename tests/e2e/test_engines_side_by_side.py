"""A newcomer's engine and one of another package, each with settings of its own, in a fresh environment."""

import json
from pathlib import Path

import pytest

from tests.e2e.engine_shell import Shell, scratch_environment, wheel_of
from tests.e2e.talk import Talk, turns

SETTINGS = """
[plugins.slots]
contextEngine = "my-engine"
[plugins.entries.my-engine.config]
note = "Said by the newcomer."
[plugins.entries.wheeled.config]
greeting = "Said by the package."
"""


@pytest.mark.timeout(600)
def test_two_engines_from_outside_serve_with_their_own_settings(tmp_path: Path) -> None:
    shell = scratch_environment(tmp_path)
    shell.run("engines", "new", "my_engine")
    shell.run("engines", "link", "my_engine")
    shell.run("engines", "install", str(wheel_of(tmp_path)), "--no-index", "--no-deps")
    shell.config.write_text(SETTINGS, encoding="utf-8")
    assert "config.toml: ok" in shell.run("config", "validate")
    assert "my-engine answered a turn" in shell.run("doctor")
    assert "wheeled answered a turn" in shell.run("doctor", "--engine", "wheeled")
    listed = shell.run("engines", "list")
    assert all(name in listed for name in ("my-engine", "wheeled", "sliding-window"))
    with shell.client() as client:
        client.call("context/ingestBatch", sessionId="s", messages=turns(Talk("openai"), 1))
        newcomer = client.call("context/assemble", sessionId="s")
        client.call("session/configure", sessionId="s", engine="wheeled")
        package = client.call("context/assemble", sessionId="s")
    assert newcomer["systemPromptAddition"] == "Said by the newcomer."
    assert package["systemPromptAddition"] == "Said by the package."
    assert newcomer["messages"] == package["messages"] == turns(Talk("openai"), 1)


@pytest.mark.timeout(600)
def test_a_newcomer_replays_a_transcript(tmp_path: Path) -> None:
    shell = scratch_environment(tmp_path)
    shell.run("engines", "new", "my_engine")
    shell.run("engines", "link", "my_engine")
    document = {"messages": turns(Talk("openai"), *range(8))}
    (tmp_path / "talk.json").write_text(json.dumps(document), encoding="utf-8")
    told = shell.run("replay", "talk.json", "--engine", "my-engine", "--budget", "500")
    assert "Every answer was valid, within the budget, and byte for byte." in told


def test_what_is_wrong_with_settings_is_told_with_the_key_and_what_to_do(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.config.write_text("", encoding="utf-8")
    shell.run("engines", "new", "my_engine")
    shell.run("engines", "link", "my_engine")
    for line in ("compactTo = 3", "compactto = 0.3"):
        shell.config.write_text(f"[plugins.entries.my-engine.config]\n{line}\n", encoding="utf-8")
        key = f"plugins.entries.my-engine.config.{line.partition(' ')[0]}"
        told = shell.run("doctor", "--engine", "my-engine", code=1)
        assert key in told and "correct that setting" in told
        assert key in shell.run("config", "validate", code=1)


def test_what_an_engine_raises_is_told_without_our_own_code(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.config.write_text("", encoding="utf-8")
    shell.run("engines", "new", "my_engine")
    engine = tmp_path / "my_engine" / "my_engine" / "engine.py"
    broken = engine.read_text(encoding="utf-8").replace(
        "        window = await keep_window(",
        '        raise ValueError("oops")\n        window = await keep_window(',
        1,
    )
    engine.write_text(broken, encoding="utf-8")
    shell.run("engines", "link", "my_engine")
    told = shell.run("engines", "check", "my-engine", code=1)
    assert "ValueError: oops" in told and "sidecar_client.py" not in told
