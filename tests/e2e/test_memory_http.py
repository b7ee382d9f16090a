"""The memory source `http` over a real server on loopback, which also fails in every way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.memory_host import MemoryHost, appended
from tests.memory_service import MemoryService, Mode

LIMIT_MS = 3000


@pytest.fixture
def service() -> Iterator[MemoryService]:
    with MemoryService() as running:
        yield running


def config(service: MemoryService, **more: object) -> dict[str, object]:
    return {
        "plugins": {
            "slots": {"memory": ["http"]},
            "entries": {"http": {"config": {"url": service.url, "timeoutMs": LIMIT_MS, **more}}},
        },
    }


def test_fragments_of_a_service_are_injected(service: MemoryService, tmp_path: Path) -> None:
    service.fragments = [
        {"id": 7, "content": "Born in Voss.", "priority": 70, "label": "Profile"},
        "Likes skis.",
    ]
    with MemoryHost(tmp_path, config=config(service, apiKey="sesame")) as host:
        text = appended(host.say("Where was I born?"))
    assert "Profile:\nBorn in Voss." in text
    assert "Likes skis." in text
    assert service.keys == ["Bearer sesame"]
    asked = service.requests[0]
    assert (asked["agentId"], asked["sessionId"], asked["prompt"]) == ("agent-1", "s1", "Where was I born?")


@pytest.mark.parametrize("mode", ["error", "reset", "hang", "slow", "garbage"])
def test_a_service_with_a_fault_costs_its_own_fragments_only(
    mode: Mode, service: MemoryService, tmp_path: Path
) -> None:
    service.fragments = ["Born in Voss."]
    service.mode = mode
    with MemoryHost(tmp_path, config=config(service)) as host:
        host.offer("notes", {"id": "n", "content": "Lives in Bergen."})
        text = appended(host.say("Where was I born?"))
        assert "Lives in Bergen." in text
        assert "Voss" not in text
        service.mode = "good"
        assert "Born in Voss." in appended(host.say("And where is that?"))


def test_fragments_are_taken_from_where_a_service_has_them(service: MemoryService, tmp_path: Path) -> None:
    service.fragments = [{"memory": "Born in Voss."}, {"other": "nothing"}, 5]
    with MemoryHost(tmp_path, config=config(service, contentAt="memory")) as host:
        assert "Born in Voss." in appended(host.say("Where was I born?"))


def test_a_key_of_the_file_does_not_go_where_the_host_points(service: MemoryService, tmp_path: Path) -> None:
    file = tmp_path / "sidecar.toml"
    keys = '[plugins.entries.http.config]\nurl = "http://127.0.0.1:9/"\napiKey = "of the file"\n'
    file.write_text(keys, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXT_SIDECAR_CONFIG", str(file))
        with MemoryHost(tmp_path, config=config(service)) as host:
            host.say("Where was I born?")
    assert service.keys == [""]
