"""Switches engines in the middle of a transcript, and says what did not survive it."""

import json
from collections.abc import Sequence
from pathlib import Path

from sidecar.messages.importers import load
from tests.e2e.inner_host import InnerHost
from tests.e2e.judge import problems
from tests.e2e.sidecar_host import Refused, history
from tests.e2e.talk import Message

ENGINES = ("legacy", "full", "terse", "default", "sliding-window", "lossless", "recall")
PAIRS = [(one, other) for one in ENGINES for other in ENGINES if one != other]
BUDGETS = (100_000, 1000)


def messages_of(path: Path) -> tuple[str, list[bytes]]:
    """The dialect and the messages of a transcript file."""
    transcript = load(path)
    return transcript.message_format, [item.message for item in transcript.items]


def lengthened(messages: Sequence[bytes], times: int) -> list[bytes]:
    """The conversation so many times behind itself, with calls, times and words of its own each time."""
    found: list[bytes] = []
    for number in range(times):
        for raw in messages:
            text = raw.decode().replace('"c1"', f'"call-{number}"').replace("Two files.", f"{number} files.")
            message: Message = json.loads(text.replace("the files", f"the files of folder {number}"))
            if "timestamp" in message:
                message["timestamp"] += 1000 * number
            found.append(json.dumps(message, ensure_ascii=False).encode())
    return found


def faults(
    host: InnerHost, session: str, messages: Sequence[bytes], one: str, other: str, split: int
) -> list[str]:
    """What is wrong where `other` takes over from `one` behind `split` messages."""
    told = [json.loads(raw) for raw in messages]
    dialect = host.options["messageFormat"]
    wrong: list[str] = []

    def ask(budget: int, shown: list[Message] | None) -> None:
        given = {} if shown is None else {"messages": shown}
        try:
            answer = host.call("context/assemble", sessionId=session, tokenBudget=budget, **given)
        except Refused as error:
            if error.code != 1002:
                wrong.append(f"{one} to {other}: {error}")
            return
        valid = problems(dialect, answer["messages"])
        wrong.extend(f"{one} to {other}, {budget} tokens: {problem}" for problem in valid)
        if not answer["messages"]:
            wrong.append(f"{one} to {other}, {budget} tokens: nothing is sent")
        if answer["estimatedTokens"] > budget:
            wrong.append(f"{one} to {other}: {answer['estimatedTokens']} tokens of {budget}")

    host.call("session/configure", sessionId=session, engine=one)
    for message in told[:split]:
        host.call("context/ingest", sessionId=session, message=message)
    host.call("context/afterTurn", sessionId=session, messages=told[:split], prePromptMessageCount=0)
    if one != "legacy":
        ask(BUDGETS[1], None)
        host.call("context/compact", sessionId=session, force=True, tokenBudget=BUDGETS[1])
        ask(BUDGETS[0], None)
    host.call("session/configure", sessionId=session, engine=other)
    if other == "legacy":
        answer = host.call("context/assemble", sessionId=session, messages=told)
        if answer["messages"] != told:
            wrong.append(f"{one} to {other}: the list is not passed through")
        told = told[:split]
    else:
        if one == "legacy":
            host.call("context/bootstrap", sessionId=session, messages=told[:split])
        for message in told[split:]:
            host.call("context/ingest", sessionId=session, message=message)
        for budget in BUDGETS:
            ask(budget, None)
            ask(budget, told)
    if history(host, session) != told:
        wrong.append(f"{one} to {other}: the history is not what was told")
    return wrong
