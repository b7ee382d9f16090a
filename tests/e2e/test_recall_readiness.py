"""What the `recall` engine reads behind the acknowledgement, so that its next answer finds that done."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engines import recollector
from sidecar.engines.full import RecallEngine
from sidecar.server.background import readiness
from tests.e2e.inner_host import InnerHost

LIMIT_S = 30.0
BUDGET = 1_500
FACT = "Always call the spare key of the boathouse by its number, KX-4471."


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of which engines have taken note, in order."""
    texts: list[str] = []
    take_note = RecallEngine.take_note

    async def spied(self: RecallEngine, session: Session, entry: Entry) -> None:
        await take_note(self, session, entry)
        texts.append(entry.reading.text)

    monkeypatch.setattr(RecallEngine, "take_note", spied)
    return texts


@pytest.fixture
def host(tmp_path: Path) -> Iterator[InnerHost]:
    """A host whose sessions the engine serves."""
    host = InnerHost(tmp_path / "host", engine="recall")
    yield host
    host.close()


def said(number: int) -> str:
    return FACT if number == 3 else f"Report {number}: the ferry left pier {number} with crate C-{number:04}."


def tell(host: InnerHost, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        message = {"role": "user", "content": text}
        stamp = f"2026-03-01T12:{number // 60:02}:{number % 60:02}Z"
        host.call(
            "context/ingest",
            sessionId="s",
            message=message,
            messageId=f"{number} {text[:9]}",
            timestamp=stamp,
        )


def wait_for(host: InnerHost, noted: list[str], text: str) -> None:
    """Until the engine has taken note of a text."""
    deadline = time.monotonic() + LIMIT_S
    while text not in noted:
        assert time.monotonic() < deadline, "nobody took note of it"
        host.call("session/list")


def answers(host: InnerHost) -> list[Any]:
    prompts = ("Which crate left pier 7?", "Where is the key of the boathouse?")
    return [
        host.call("context/assemble", sessionId="s", prompt=prompt, tokenBudget=BUDGET)["messages"]
        for prompt in prompts
    ]


def test_every_message_is_noted_once_though_nothing_is_asked(host: InnerHost, noted: list[str]) -> None:
    texts = [said(number) for number in range(40)]
    tell(host, texts)
    wait_for(host, noted, texts[-1])
    assert noted == texts


def test_answers_are_the_same_where_nothing_was_noted(
    tmp_path: Path, host: InnerHost, noted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recollector, "PATIENCE_S", LIMIT_S)
    texts = [said(number) for number in range(120)]
    tell(host, texts)
    wait_for(host, noted, texts[-1])
    ahead = answers(host)
    monkeypatch.setattr(readiness, "REST_S", 1_000.0)
    late = InnerHost(tmp_path / "late", engine="recall")
    tell(late, texts)
    assert "KX-4471" in str(ahead)
    assert _without_codes(answers(late)) == _without_codes(ahead)
    late.close()


def _without_codes(given: object) -> str:
    """The answers without the codes in the marks, which each store makes with a secret of its own."""
    return re.sub(r":[0-9]{18}\]", "]", str(given))


def test_what_replaces_truncated_messages_is_noted_too(host: InnerHost, noted: list[str]) -> None:
    tell(host, [said(number) for number in range(20)])
    wait_for(host, noted, said(19))
    host.call("session/truncate", sessionId="s", afterMessageId="5 Report 5:")
    tell(host, ["The ferry is called Calliope now."])
    wait_for(host, noted, "The ferry is called Calliope now.")


def test_an_engine_that_fails_to_take_note_answers_all_the_same(
    host: InnerHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    async def failing(self: RecallEngine, session: Session, entry: Entry) -> None:
        del self, session
        tried.append(entry.place)
        raise LookupError

    monkeypatch.setattr(RecallEngine, "take_note", failing)
    tell(host, [said(number) for number in range(60)])
    deadline = time.monotonic() + LIMIT_S
    while not tried:
        assert time.monotonic() < deadline, "it was not asked to"
        host.call("session/list")
    assert "KX-4471" in str(answers(host))
