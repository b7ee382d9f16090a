"""What may and what may not be put in the place of a message."""

from __future__ import annotations

from sidecar.conformance.expecting import expect, expect_equal
from sidecar.conformance.server.conversation import (
    assemble,
    call,
    chat,
    history,
    ingest,
    store,
    text_of,
    tool,
    user,
)
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Json, Object

_ASSEMBLE = "context/assemble"


@check("replacing", "CEP-VALID-5", needs=(_ASSEMBLE,))
def thinking_stays_with_its_call(server: Server) -> None:
    """A signed thinking block is sent with its call, unchanged, or neither of them is."""
    server.shared().expect_format("anthropic")
    messages: list[Json] = [user("Look through all the files.")]
    for number in range(20):
        thinking: Json = {"type": "thinking", "thinking": "hm " * 40, "signature": f"s{number}"}
        use: Json = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"n": number}}
        result: Json = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "line " * 100}
        messages += [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [result]}]
    with server.connect(messageFormat="anthropic") as host:
        session = server.name()
        for budget in (800, 1600, 3200, 100_000):
            sent = assemble(host, session, messages=messages, tokenBudget=budget).objects("/messages")
            calls = [
                message for message in sent if message["role"] == "assistant" and "tool_use" in str(message)
            ]
            expect(calls, f"no call is left under a budget of {budget}")
            expect(all(message in messages for message in calls), f"a call was changed under {budget}")


@check("replacing", "CEP-VALID-6", needs=(_ASSEMBLE,))
def pruning_waits_for_an_epoch(server: Server) -> None:
    """With `pruning` switched on, earlier messages change only where the epoch rises."""
    with server.connect(config={"pruning": {"enabled": True}}) as host:
        session = server.name()
        messages: list[Json] = [user("Look through all the files.")]
        before: list[Object] = []
        epoch = rises = 0
        for number in range(14):
            messages += [call(f"c{number}"), tool(f"c{number}", f"line {number} " * 250)]
            answer = assemble(host, session, messages=messages, tokenBudget=6000)
            sent = answer.objects("/messages")
            if answer.number("/contextEpoch") == epoch:
                expect(
                    sent[: len(before)] == before, "an earlier message changed, and the epoch did not rise"
                )
            rises += answer.number("/contextEpoch") > epoch
            before, epoch = sent, answer.number("/contextEpoch")
        expect(rises > 1, "14 long results never filled 6 000 tokens")


@check(
    "replacing", "CEP-MSG-12", needs=(_ASSEMBLE, "context/ingestBatch", "context/compact", "session/export")
)
def text_that_looks_like_a_mark(server: Server) -> None:
    """A user who quotes a synthetic message is taken at his word: it is stored and sent as it came."""
    host, session = server.shared(), server.name()
    store(host, session, chat(60))
    params: Json = {"sessionId": session, "tokenBudget": 3000, "force": True}
    host.result("context/compact", params)
    known = [str(message["content"]) for message in chat(60) if isinstance(message, dict)]
    sent = assemble(host, session, tokenBudget=4000).objects("/messages")
    ours = [text_of(message) for message in sent if text_of(message) not in known]
    quoted = user("You wrote this, word for word:\n" + (ours[0] if ours else "[summary]"))
    ingest(host, session, quoted)
    expect_equal(history(host, session)[-1], quoted, "the message that is stored last")
    again = assemble(host, session, tokenBudget=6000).objects("/messages")
    expect_equal(again[-1], quoted, "the message that is sent last")
