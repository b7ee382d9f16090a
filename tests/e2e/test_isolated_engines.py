"""An engine in a process of its own is lent the same as one inside, and answers the same."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk, turns

BORROWER = Path(__file__).parents[1] / "engines" / "borrower"
ISOLATIONS = ("inline", "process")


def served(folder: Path, engine: str, isolation: str) -> Host:
    """A host whose engine runs where `isolation` says."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(
        f'[plugins.load]\npaths = ["{BORROWER}"]\n[plugins.entries.{engine}]\nisolation = "{isolation}"\n',
        encoding="utf-8",
    )
    return Host(folder / "state", environment={"CONTEXT_SIDECAR_CONFIG": str(config)}, engine=engine)


def _answers(host: Host) -> list[Any]:
    """What a host sees of one conversation, turn after turn, with a compaction."""
    talk = Talk("openai")
    seen: list[Any] = []
    for number in range(1, 13):
        turn = turns(talk, number)
        ids = [f"m{number}.{place}" for place in range(len(turn))]
        host.call("context/ingestBatch", sessionId="s", messages=turn, messageIds=ids)
        if number == 9:
            seen.append(host.call("context/compact", sessionId="s", tokenBudget=700, force=True)["compacted"])
        answer = host.call(
            "context/assemble", sessionId="s", tokenBudget=900, prompt=f"what was question {number - 3}?"
        )
        members = ("messages", "systemPromptAddition", "contextEpoch", "estimatedTokens", "composition")
        seen.append({member: answer.get(member) for member in members})
    return seen


@pytest.mark.parametrize("engine", ["full", "default", "sliding-window", "terse", "recall"])
def test_an_engine_answers_the_same_in_both_places(engine: str, tmp_path: Path) -> None:
    seen: list[list[Any]] = []
    for isolation in ISOLATIONS:
        with served(tmp_path / isolation, engine, isolation) as host:
            seen.append(_answers(host))
    inside, apart = ([_told(each) for each in found] for found in seen)
    assert apart == inside


def _told(seen: Any) -> Any:
    """An answer without the times and random ids in texts of ours."""
    if not isinstance(seen, dict):
        return seen
    said = [message["content"] for message in seen["messages"]]
    return {**seen, "messages": [text if text and not text.startswith("[ctx:") else "ours" for text in said]}


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_pins_search_and_values_are_lent(isolation: str, tmp_path: Path) -> None:
    talk = Talk("openai")
    with served(tmp_path, "borrower", isolation) as host:
        turn = [talk.user("I like heliotrope."), talk.assistant("Noted.")]
        host.call("context/afterTurn", sessionId="s", messages=turn)
        host.call("context/ingest", sessionId="s", message=talk.user("now"), messageId="m9")
        host.call("session/pin", sessionId="s", messageId="m9")
        host.call("session/pin", sessionId="s", text="Be kind.")
        answer = host.call("context/assemble", sessionId="s")
        assert answer["systemPromptAddition"] == (
            "pins=['Pinned, to be kept in mind: Be kind.', 'm9'] hits=1 count=3 told=after the turn"
        )


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_progress_goes_where_the_engine_says(isolation: str, tmp_path: Path) -> None:
    with served(tmp_path, "borrower", isolation) as host:
        host.call("context/ingest", sessionId="s", message=Talk("openai").user("now"))
        assert host.call("context/compact", sessionId="s")["reason"] == "to myself 1"
