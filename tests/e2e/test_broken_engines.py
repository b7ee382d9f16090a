"""Whatever an engine does, its own request alone is hurt, and the host is told what happened."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.judge import is_synthetic
from tests.e2e.sidecar_host import Host
from tests.engine_gallery import assemble, configured, is_served, tell

ENGINE_FAILED = 1005
ENGINE_UNAVAILABLE = 1001
_numbers = count(1)

FAILS_TO_ASSEMBLE = {
    "raises": "ValueError: no such thing",
    "unprintable": "_Unprintable",
    "exits": "SystemExit: 3",
    "interrupts": "KeyboardInterrupt",
    "cancels": "CancelledError",
    "generator_exit": "GeneratorExit",
    "recurses": "RecursionError",
    "recurses_through_host": "RecursionError",
    "thread_exits": "SystemExit: 4",
    "dict": "a dict, no Assembly",
    "none": "a NoneType, no Assembly",
    "text_items": "a str, no list",
    "strange_items": "neither Kept nor Made",
    "strange_text": "a text of the assembly is a object",
    "foreign": "which this session has not",
    "endless_text": "characters",
}
MENDED = (
    "over_budget",
    "breaks_pairs",
    "orphans",
    "duplicates",
    "backwards",
    "empty",
    "mutates",
    "surrogates",
    "prints",
    "writes_fd_1",
    "reads_stdin",
    "forks",
)
FAILS_TO_COMPACT = {
    "bad_json": "details",
    "nan": "tokens_before",
    "negative": "tokens_before",
    "unserialisable": "",
    "strange_state": "",
    "hangs": "no answer within 5000 ms",
    "swallows_cancelling": "no answer within 5000 ms",
    "recurses_in_tasks": "",
}
ENDS_ITS_PROCESS = {
    "ends_process": "exit code 7",
    "kills_process": "SIGKILL",
    "crashes": "SIGSEGV",
    "stops_loop": "",
    "closes_everything": "",
}


@pytest.fixture(scope="module", params=["inline", "process"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One sidecar for all that can be survived without a process of its own, and one with."""
    with configured(tmp_path_factory.mktemp(request.param), request.param) as host:
        yield host


@pytest.fixture
def session(host: Host) -> Callable[[str], str]:
    """Names a session with a history after the way in which its engine is broken."""

    def named(kind: str) -> str:
        session = f"bad {kind} {next(_numbers)}"
        tell(host, session)
        return session

    return named


def _failure(host: Host, method: str, session: str, **params: object) -> str:
    refused = host.refusal(method, sessionId=session, **params)
    assert refused.code == ENGINE_FAILED
    assert refused.data["engineId"] == "gallery" and refused.data["method"] == method
    said = f"{refused} {refused.data}"
    assert "Traceback" not in said and "/tests/" not in said
    assert isinstance(refused.data["retryable"], bool) and refused.data["hint"]
    return str(refused.data["message"])


@pytest.mark.parametrize("kind", FAILS_TO_ASSEMBLE)
def test_a_failure_is_that_of_its_request(kind: str, host: Host, session: Callable[[str], str]) -> None:
    assert FAILS_TO_ASSEMBLE[kind] in _failure(host, "context/assemble", session(kind))
    is_served(host, f"good {next(_numbers)}")


@pytest.mark.parametrize("kind", MENDED)
def test_careless_answers_are_mended(kind: str, host: Host, session: Callable[[str], str]) -> None:
    bad = session(kind)
    sent = assemble(host, bad)
    stored = [entry["message"] for entry in host.call("session/export", sessionId=bad)["messages"]]
    own = [message for message in sent if not is_synthetic(message)]
    assert own and [message for message in stored if message in own] == own
    is_served(host, f"good {next(_numbers)}")


@pytest.mark.parametrize("kind", FAILS_TO_COMPACT)
def test_a_compaction_that_fails_says_why(kind: str, host: Host, session: Callable[[str], str]) -> None:
    assert FAILS_TO_COMPACT[kind] in _failure(host, "context/compact", session(kind))
    is_served(host, f"good {next(_numbers)}")


def test_a_summary_with_half_a_character_is_sent(host: Host, session: Callable[[str], str]) -> None:
    outcome = host.call("context/compact", sessionId=session("surrogates"))
    assert outcome["compacted"]


@pytest.mark.parametrize("kind", ["nan", "negative", "text"])
def test_numbers_that_are_none(kind: str, host: Host, session: Callable[[str], str]) -> None:
    assert "estimated_tokens" in _failure(host, "context/preflight", session(kind), tokenBudget=100)
    is_served(host, f"good {next(_numbers)}")


@pytest.mark.parametrize("kind", ENDS_ITS_PROCESS)
def test_the_end_of_its_process_is_told_and_another_one_serves(kind: str, isolated: Host) -> None:
    tell(isolated, f"bad {kind} 1")
    assert ENDS_ITS_PROCESS[kind] in _failure(isolated, "context/compact", f"bad {kind} 1")
    is_served(isolated, f"good {next(_numbers)}")


def test_an_engine_that_takes_all_memory_is_stopped(tmp_path: Path) -> None:
    with configured(tmp_path, "process", "compact = 60000") as host:
        tell(host, "bad allocates 1")
        assert "Memory" in _failure(host, "context/compact", "bad allocates 1")
        is_served(host, f"good {next(_numbers)}")


def test_a_busy_engine_holds_up_its_own_sessions_alone(isolated: Host) -> None:
    tell(isolated, "bad keeps_busy 1")
    isolated.call("session/configure", sessionId="other", engine="full")
    busy = isolated.send("context/compact", sessionId="bad keeps_busy 1")
    is_served(isolated, "other")
    assert busy not in isolated.answers, "the other session waited for the busy one"
    refused = isolated.wait_all([busy])[0]
    assert refused.code == ENGINE_FAILED and "no answer within 9000 ms" in refused.data["message"]
    is_served(isolated, f"good {next(_numbers)}")


def test_a_copy_of_the_engines_process_says_nothing(isolated: Host) -> None:
    tell(isolated, "bad forks_on 1")
    assert isolated.call("context/compact", sessionId="bad forks_on 1")["compacted"]
    for _ in range(5):
        is_served(isolated, f"good {next(_numbers)}")


def test_a_module_that_is_slow_to_import_holds_up_nobody(isolated: Host) -> None:
    isolated.call("session/configure", sessionId="other", engine="full")
    slow = isolated.send("session/configure", sessionId="slow", engine="slow-import")
    is_served(isolated, "other")
    assert slow not in isolated.answers, "the other session waited for the import"
    assert isolated.wait(slow)["engine"] == "slow-import"
    is_served(isolated, "slow")


def test_a_module_that_ends_the_program_is_an_engine_that_is_not_available(isolated: Host) -> None:
    refused = isolated.refusal("session/configure", sessionId="s", engine="exits-at-import")
    assert refused.code == ENGINE_UNAVAILABLE and "I need a license" in str(refused)
    is_served(isolated, f"good {next(_numbers)}")


@pytest.fixture
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A sidecar whose engine runs in a process of its own."""
    with configured(tmp_path_factory.mktemp("isolated"), "process", "compact = 9000") as host:
        yield host
