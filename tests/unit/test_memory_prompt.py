"""The paragraph on memory for system prompts."""

from sidecar.engine import build_memory_system_prompt_addition as addition


def test_it_names_the_tools_that_there_are_and_no_others() -> None:
    text = addition(["bash", "context_search"])
    assert "context_search" in text
    assert "context_expand" not in text
    assert "bash" not in text


def test_it_does_not_depend_on_the_order_of_tools() -> None:
    assert addition(["context_expand", "context_search"]) == addition(["context_search", "context_expand"])


def test_it_asks_for_citations_as_the_host_does() -> None:
    assert len({addition((), mode) for mode in ("on", "off", "auto", None)}) == 3
