"""Memory sources of installed packages are found by their entry points."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from sidecar.memory.contract import SourceHost, SourceUnavailable
from sidecar.memory.coordinator import load_source

MODULE = """
class Weather:
    injection_points = ("per-message",)

    def __init__(self, host):
        self.host = host

    async def get_context(self, request):
        return []


class Broken:
    def __init__(self, host):
        raise OSError("no network")


class Empty:
    def __init__(self, host):
        pass
"""
HOST = cast(SourceHost, object())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weather_memory.py").write_text(MODULE, encoding="utf-8")
    facts = tmp_path / "weather_memory-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: weather-memory\nVersion: 1.0\n", encoding="utf-8"
    )
    points = "".join(f"{name.lower()} = weather_memory:{name}\n" for name in ("Weather", "Broken", "Empty"))
    (facts / "entry_points.txt").write_text(f"[context_sidecar.memory]\n{points}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "weather_memory", raising=False)


@pytest.mark.usefixtures("package")
def test_a_source_of_a_package_is_loaded_with_its_budget() -> None:
    asked = load_source("weather", HOST, {"tokenBudget": 70})
    assert (asked.source.name, asked.token_budget) == ("weather", 70)
    assert cast(Any, asked.source).host is HOST


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("source_id", "config", "told"),
    [
        ("none-such", {}, "installed are: .*weather.*workspace"),
        ("broken", {}, "does not load: OSError$"),
        ("empty", {}, "lacks get_context"),
        ("weather", {"tokenBudget": 0}, "tokenBudget must be"),
        ("weather", {"tokenBudget": True}, "tokenBudget must be"),
    ],
)
def test_a_source_that_cannot_be_used_says_why(source_id: str, config: dict[str, Any], told: str) -> None:
    with pytest.raises(SourceUnavailable, match=told):
        load_source(source_id, HOST, config)
