"""Search goes on by words where meaning is asked for and cannot be had."""

import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.test_search_meaning import MADE_S, ON, found, message, search_check

FILES = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")
SAID = "The spare key hangs behind the pantry door."


def shadow(folder: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes] = {}) -> None:
    """Let processes find this instead of the installed package of the model."""
    place = folder / "shadows" / "wordllama"
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    (place / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(place.parent), prepend=":")


def test_without_the_extra_the_doctor_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow(tmp_path, monkeypatch)
    with AgentHost(tmp_path / "state", config=ON) as host:
        host.ingest("s", message(SAID))
        assert found(host, "Where is the spare key?") == [SAID]
        check = search_check(host)
    assert not check["ok"]
    assert (
        check["message"] == "by words only: weights/l2_supercat_256.safetensors of wordllama is not installed"
    )
    assert "install the extra `semantic`" in check["fix"]


def test_auto_without_the_extra_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shadow(tmp_path, monkeypatch)
    with AgentHost(tmp_path / "state", config={"search": {"meaning": "auto"}}) as host:
        check = search_check(host)
    assert check["ok"]
    assert check["message"].startswith("by words only")


def test_a_model_whose_files_were_changed_is_not_loaded_and_leaves_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed,) = find_spec("wordllama").submodule_search_locations or ()  # pyright: ignore[reportOptionalMemberAccess]
    weights, vocabulary = ((Path(installed) / name).read_bytes() for name in FILES)
    changed = weights[:-1] + bytes([weights[-1] ^ 1])
    shadow(tmp_path, monkeypatch, dict(zip(FILES, (changed, vocabulary), strict=True)))
    with AgentHost(tmp_path / "state", config=ON) as host:
        host.ingest("s", message(SAID))
        assert found(host, "Where is the spare key?") == [SAID]
        deadline = time.monotonic() + MADE_S
        while search_check(host)["ok"]:
            assert time.monotonic() < deadline
        assert (
            f"{FILES[0]} of wordllama differs from the file that this version supports"
            in search_check(host)["message"]
        )
        assert str(tmp_path) not in search_check(host)["message"]
        assert found(host, "Where is the spare key?") == [SAID]
