"""The operator decides where episodes go, and secrets stay private."""

from pathlib import Path

import pytest

from sidecar.server.configuration.resolve import ConfigurationError, resolve
from tests.client_kit import run_cli

WEBHOOK = '[episodes]\nenabled = true\nbackend = "webhook"\nurl = "https://ours/e"\nsecret = "file-secret"\n'


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_is_handed_over_by_default(tmp_path: Path) -> None:
    path = _file(tmp_path, "[limits]\nmaxInFlight = 8\n")
    assert resolve(file=path, environ={}).episodes is None
    assert resolve(file=path, overrides={"episodes": {"backend": "file"}}, environ={}).episodes is None


def test_a_secret_of_the_operator_goes_to_no_address_that_the_host_names(tmp_path: Path) -> None:
    path, environ = _file(tmp_path, WEBHOOK), {"CONTEXT_SIDECAR_EPISODES_SECRET": "environment-secret"}
    ours = resolve(file=path, environ=environ).episodes
    assert ours is not None and (ours.url, ours.secret) == ("https://ours/e", "file-secret")
    assert "file-secret" not in repr(ours)
    for overrides in ({"url": "https://theirs/e"}, {"searchUrl": "https://theirs/s"}):
        theirs = resolve(file=path, overrides={"episodes": overrides}, environ=environ).episodes
        assert theirs is not None and theirs.secret == ""


def test_the_host_names_no_file(tmp_path: Path) -> None:
    path = _file(tmp_path, '[episodes]\nenabled = true\npath = "/ours/e.jsonl"\n')
    wanted = {"episodes": {"path": "/theirs/e.jsonl"}}
    settings = resolve(file=path, overrides=wanted, environ={})
    assert settings.episodes is not None and settings.episodes.path == Path("/ours/e.jsonl")
    assert any("episodes.path" in warning for warning in settings.warnings)


def test_a_webhook_needs_an_address(tmp_path: Path) -> None:
    path = _file(tmp_path, '[episodes]\nenabled = true\nbackend = "webhook"\n')
    with pytest.raises(ConfigurationError, match=r"episodes\.url"):
        resolve(file=path, environ={})


@pytest.mark.parametrize("empty", ["whsec_", "whsec_  ", "  ", " whsec_ "])
def test_an_empty_key_is_refused_wherever_it_comes_from(empty: str, tmp_path: Path) -> None:
    path = _file(tmp_path, WEBHOOK.replace("file-secret", empty))
    with pytest.raises(ConfigurationError, match=r"episodes\.secret: the key is empty"):
        resolve(file=path, environ={})
    path = _file(tmp_path, WEBHOOK.replace('secret = "file-secret"\n', ""))
    environ = {"CONTEXT_SIDECAR_EPISODES_SECRET": empty}
    with pytest.raises(ConfigurationError, match="CONTEXT_SIDECAR_EPISODES_SECRET: the key is empty"):
        resolve(file=path, environ=environ)
    unused = _file(tmp_path, WEBHOOK)
    assert resolve(file=unused, environ=environ).episodes is not None


def test_the_configuration_is_shown_without_the_secret_and_found_right(tmp_path: Path) -> None:
    source = '[plugins.slots]\nmemory = ["episodes"]\n[plugins.entries.episodes.config]\nlimit = 3\n'
    path = _file(tmp_path, WEBHOOK + source)
    shown = run_cli("config", "show", "--config", str(path), state_dir=tmp_path)
    assert "file-secret" not in shown.stdout and "https://ours/e" in shown.stdout
    checked = run_cli("config", "validate", "--config", str(path), state_dir=tmp_path)
    assert checked.returncode == 0, checked.stderr
