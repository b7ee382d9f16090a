"""Assembled contexts: budget, validity, stable prefixes, deltas, pruning and synthetic messages."""

from __future__ import annotations

from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.conversation import (
    assemble,
    assistant,
    call,
    chat,
    history,
    ingest,
    require_valid,
    store,
    text_of,
    tool,
    user,
)
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json, Message, Object

_ASSEMBLE = "context/assemble"
_COMMIT = "context/commitTurn"
_BATCH = "context/ingestBatch"


def _texts(answer: Message) -> list[str]:
    return [text_of(message) for message in answer.objects("/messages")]


@check("assembling", "CEP-ASM-1", needs=(_ASSEMBLE, _BATCH))
def stored_messages_are_sent(server: Server) -> None:
    """Without `messages`, the stored messages are sent byte for byte while they fit."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [user("one"), assistant("two"), user("three")]
    store(host, session, messages)
    sent = [
        message for message in assemble(host, session).objects("/messages") if message["role"] != "system"
    ]
    expect_equal(sent, messages, "messages")


@check("assembling", "CEP-ASM-2", "CEP-ASM-3", "CEP-ASM-5", needs=(_ASSEMBLE, _COMMIT))
def messages_of_the_host(server: Server) -> None:
    """`messages` supply the live tail; assembling does not store them, committing the turn does."""
    host, session = server.shared(), server.name()
    first: list[Json] = [user("one"), assistant("two")]
    host.result(_COMMIT, {"sessionId": session, "advancementKey": "1", "messages": first})
    whole: list[Json] = [*first, user("three")]
    answer = assemble(host, session, messages=whole)
    expect_equal(_texts(answer), ["one", "two", "three"], "texts of the answer")
    expect_equal(history(host, session), first, "what is stored after assembling")
    done: list[Json] = [*whole, assistant("four")]
    host.result(_COMMIT, {"sessionId": session, "advancementKey": "2", "messages": done})
    expect_equal(history(host, session), done, "what is stored after the turn")


@check("assembling", "CEP-HIST-22", needs=(_ASSEMBLE,))
def unknown_sessions(server: Server) -> None:
    """An unknown session is assembled from `messages`; without these it gets 1003."""
    host = server.shared()
    answer = assemble(host, server.name(), messages=[user("hello")])
    expect_equal(_texts(answer), ["hello"], "texts of the answer")
    assemble(host, server.name(), messages=[])
    refused = host.request(_ASSEMBLE, {"sessionId": server.name()})
    expect_equal(refused.code, 1003, "code of the answer without messages")


@check("assembling", "CEP-BUDGET-1", needs=(_ASSEMBLE,))
def invalid_budgets(server: Server) -> None:
    """A `tokenBudget` that is not a positive integer gets -32602."""
    host = server.shared()
    for budget in (0, -1, 1.5, "many", True):
        params: Json = {"sessionId": "s", "messages": [user("x")], "tokenBudget": budget}
        expect_equal(host.request(_ASSEMBLE, params).code, -32602, f"code of the answer to {budget!r}")


@check("assembling", "CEP-BUDGET-3", "CEP-VALID-1", needs=(_ASSEMBLE, _BATCH))
def answers_fit(server: Server) -> None:
    """For every budget the estimate stays within it, the list is valid, and the newest message is sent."""
    host, session = server.shared(), server.name()
    stored = [*chat(40), user("The last one?")]
    store(host, session, stored)
    for budget in (400, 800, 1600, 3200, 6400, 12800, 64000):
        answer = assemble(host, session, tokenBudget=budget)
        estimate = answer.number("/estimatedTokens")
        expect(estimate <= budget, f"{estimate} tokens exceed the budget of {budget}")
        messages = answer.objects("/messages")
        require_valid(messages)
        theirs = [message for message in messages if message in stored]
        expect_equal(theirs[-1:], stored[-1:], f"the last message of the host at {budget}")


@check("assembling", "CEP-BUDGET-3", level="should", needs=(_ASSEMBLE,))
def estimates_are_honest(server: Server) -> None:
    """The estimate grows with the text: ten times the text is at least five times the tokens."""
    host = server.shared()
    small, large = (
        assemble(host, server.name(), messages=[user("word " * count)]).number("/estimatedTokens")
        for count in (300, 3000)
    )
    expect(large >= 5 * small > 500, f"{small} tokens for 300 words, {large} for 3000")


@check("assembling", "CEP-BUDGET-5", "CEP-BUDGET-4", needs=(_ASSEMBLE,))
def overflow(server: Server) -> None:
    """If the minimum does not fit, the error is 1002, and a budget of `data.required` suffices."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [{"role": "system", "content": "rule " * 300}, user("long " * 500)]
    answer = host.request(_ASSEMBLE, {"sessionId": session, "messages": messages, "tokenBudget": 50})
    expect_equal(answer.code, 1002, "code of the answer")
    expect_equal(answer.at("/error/data/tokenBudget"), 50, "data.tokenBudget")
    required = answer.at("/error/data/required")
    expect(isinstance(required, int), "data.required is missing")
    fitting = assemble(host, session, messages=messages, tokenBudget=required)
    expect(fitting.number("/estimatedTokens") <= int(str(required)), "the answer exceeds data.required")


@check("assembling", "CEP-ASM-6", needs=(_ASSEMBLE,))
def prompts_are_reserved(server: Server) -> None:
    """`prompt` is not among the messages of the answer, but its tokens are reserved."""
    host, session = server.shared(), server.name()
    messages: list[Json] = chat(8)
    prompt = "prompt " * 1200
    answer = assemble(host, session, messages=messages, prompt=prompt, tokenBudget=2000)
    expect(prompt not in _texts(answer), "the prompt is in the messages")
    expect(answer.number("/estimatedTokens") <= 1000, "the tokens of the prompt were not reserved")


@check("assembling", "CEP-VALID-1", "CEP-VALID-3", "CEP-VALID-4", needs=(_ASSEMBLE,))
def calls_and_results_stay_together(server: Server) -> None:
    """Orphan results, lost results and interrupted calls are repaired; an open call at the end stays open."""
    host = server.shared()
    broken: list[Json] = [
        tool("lost", "a result without its call"),
        user("do two things"),
        call("a", "b"),
        tool("a", "first"),
        user("never mind"),
        assistant("fine"),
        user("again"),
        call("c"),
    ]
    messages = assemble(host, server.name(), messages=broken).objects("/messages")
    require_valid(messages)
    expect(bool(messages[-1].get("tool_calls")), "the open call at the end is missing")
    expect("a result without its call" not in [text_of(m) for m in messages], "an orphan result was sent")


@check("assembling", "CEP-VALID-1", "CEP-VALID-2", needs=(_ASSEMBLE,))
def tool_loops_under_any_budget(server: Server) -> None:
    """A long tool loop stays valid under budgets that cut into it, and calls are never changed."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [user("Look through all the files.")]
    for number in range(30):
        id = f"c{number}"
        messages += [call(id, arguments=f'{{"path":"f{number}"}}'), tool(id, f"line {number} " * 60)]
    known = {str(message) for message in messages}
    for budget in (600, 1200, 2400, 4800, 40000):
        answer = assemble(host, session, messages=messages, tokenBudget=budget)
        sent = answer.objects("/messages")
        require_valid(sent)
        expect(answer.number("/estimatedTokens") <= budget, f"over the budget of {budget}")
        changed = [m for m in sent if m.get("tool_calls") and str(m) not in known]
        expect(not changed, f"a call was changed: {changed[:1]}")


@check("assembling", "CEP-PREFIX-1", "CEP-PREFIX-2", "CEP-PREFIX-3", needs=(_ASSEMBLE, "context/ingest"))
def equal_epochs_extend_each_other(server: Server) -> None:
    """Within an epoch each answer starts with the one before; the epoch never falls."""
    host, session = server.shared(), server.name()
    before: Message | None = None
    rises = 0
    for message in chat(40):
        ingest(host, session, message)
        answer = assemble(host, session, tokenBudget=2000)
        if before is not None:
            old, new = before.number("/contextEpoch"), answer.number("/contextEpoch")
            expect(new >= old, f"the epoch fell from {old} to {new}")
            rises += new > old
            if new == old:
                earlier = before.objects("/messages")
                expect(
                    answer.objects("/messages")[: len(earlier)] == earlier,
                    f"an answer of epoch {new} does not start with the one before",
                )
                addition = "/result/systemPromptAddition"
                expect_equal(answer.at(addition, None), before.at(addition, None), "systemPromptAddition")
        before = answer
    expect(rises > 0, "40 turns never exceeded a budget of 2 000 tokens")


@check("assembling", "CEP-PREFIX-4", needs=(_ASSEMBLE, _BATCH))
def larger_budgets_keep_the_epoch(server: Server) -> None:
    """A budget larger by at most a third keeps the epoch."""
    host, session = server.shared(), server.name()
    store(host, session, [*chat(30), user("now")])
    small = assemble(host, session, tokenBudget=1500)
    large = assemble(host, session, tokenBudget=2000)
    expect_equal(large.number("/contextEpoch"), small.number("/contextEpoch"), "epoch under a larger budget")


@check("assembling", "CEP-PREFIX-4", "CEP-PREFIX-7", needs=(_ASSEMBLE, _BATCH))
def views_do_not_disturb_each_other(server: Server) -> None:
    """A side question with a small budget does not change the answers under a large one."""
    host, session = server.shared(), server.name()
    store(host, session, [*chat(40), user("now")])
    first = assemble(host, session, tokenBudget=9000)
    side = assemble(host, session, tokenBudget=1000)
    again = assemble(host, session, tokenBudget=9000)
    expect_equal(again.objects("/messages"), first.objects("/messages"), "the answer after a side question")
    epochs = [answer.number("/contextEpoch") for answer in (first, side, again)]
    expect(epochs[0] < epochs[1] < epochs[2], f"the epoch did not rise with the view: {epochs}")


@check("assembling", "CEP-PREFIX-7", needs=(_ASSEMBLE, _BATCH))
def other_views_have_all_their_room(server: Server) -> None:
    """A first answer with a small budget does not shorten later answers under a large one."""
    host = server.shared()
    counts: list[int] = []
    for narrow in (False, True):
        session = server.name()
        store(host, session, [*chat(40), user("now")])
        if narrow:
            assemble(host, session, tokenBudget=1000)
        counts.append(len(assemble(host, session, tokenBudget=9000).objects("/messages")))
    expect_equal(counts[1], counts[0], "messages after an answer with a small budget")


@check("assembling", "CEP-PREFIX-6", needs=(_ASSEMBLE, _BATCH))
def stable_prefix(server: Server) -> None:
    """`stablePrefix` has no more messages and tokens than the answer."""
    host, session = server.shared(), server.name()
    store(host, session, chat(3))
    answer = assemble(host, session)
    expect(
        answer.number("/stablePrefix/messageCount") <= len(answer.objects("/messages")),
        "stablePrefix has more messages than the answer",
    )
    expect(
        answer.number("/stablePrefix/tokens") <= answer.number("/estimatedTokens"),
        "stablePrefix has more tokens than the answer",
    )


@check("assembling", "CEP-COMP-1", needs=(_ASSEMBLE, _BATCH))
def composition_adds_up(server: Server) -> None:
    """`composition` adds up to `estimatedTokens` and to the number of messages."""
    host, session = server.shared(), server.name()
    store(host, session, [{"role": "system", "content": "Be brief."}, *chat(30)])
    for budget in (1000, 3000, 100_000):
        answer = assemble(host, session, tokenBudget=budget)
        parts = answer.objects("/composition")
        expect_equal(_sum(parts, "tokens"), answer.number("/estimatedTokens"), "sum of tokens")
        expect_equal(_sum(parts, "messageCount"), len(answer.objects("/messages")), "sum of messageCount")


@check("assembling", "CEP-MSG-10", "CEP-ASM-8", "CEP-MSG-8", "CEP-MSG-9", needs=(_ASSEMBLE, _COMMIT))
def own_answers_are_a_fixed_point(server: Server) -> None:
    """An answer sent back as `messages` is returned unchanged; its synthetic messages are never stored."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [*chat(30), user("now")]
    host.result(_COMMIT, {"sessionId": session, "advancementKey": "1", "messages": messages})
    first = assemble(host, session, messages=messages, tokenBudget=1500)
    sent: list[Json] = list(first.objects("/messages"))
    second = assemble(host, session, messages=sent, tokenBudget=1500)
    expect_equal(second.objects("/messages"), sent, "messages of the second answer")
    host.result(
        _COMMIT,
        {"sessionId": session, "advancementKey": "2", "messages": [*sent, assistant("later")]},
    )
    expect_equal(history(host, session), [*messages, assistant("later")], "what is stored")


@check(
    "assembling",
    "CEP-DELTA-1",
    "CEP-DELTA-2",
    "CEP-DELTA-3",
    "CEP-DELTA-4",
    needs=(_ASSEMBLE, "context/ingest"),
)
def edits_yield_the_full_list(server: Server) -> None:
    """Edits turn the previous list into the full one; an unknown `previousResultId` gets the full list."""
    with server.connect(hostCapabilities=["assembleDelta"]) as host:
        session = server.name()
        members: Object = {"tokenBudget": 1500}
        current: list[Object] = []
        previous: Json = None
        for message in chat(25):
            ingest(host, session, message)
            whole = assemble(host, session, **members).objects("/messages")
            answer = assemble(host, session, previousResultId=previous, **members)
            both = [answer.at(f"/result/{name}", None) is not None for name in ("messages", "edits")]
            expect(both[0] != both[1], "the answer needs either messages or edits")
            current = _edited(current, answer)
            expect_equal(current, whole, "the list after the edits")
            previous = answer.text("/resultId")
        full = assemble(host, session, previousResultId="no such result", **members)
        expect_equal(full.objects("/messages"), current, "messages for an unknown previousResultId")


@check("assembling", "CEP-PROJ-1", needs=(_ASSEMBLE,))
def unknown_projections(server: Server) -> None:
    """An unknown projection gets -32602."""
    params: Json = {"sessionId": "s", "messages": [user("x")], "projection": "imax"}
    expect_equal(server.shared().request(_ASSEMBLE, params).code, -32602, "code of the answer")


@check("assembling", "CEP-PROJ-1", "CEP-PROJ-3", "CEP-PROJ-4", needs=(_ASSEMBLE, "context/ingest"))
def codex_projection(server: Server) -> None:
    """`codex` returns a prompt with this turn's text; the fingerprint changes only with the content."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("What is the capital?"))
    first = assemble(host, session, projection="codex")
    again = assemble(host, session, projection="codex")
    prompt = first.text("/contextProjection/prompt")
    expect("What is the capital?" in prompt, "the prompt lacks the turn's text")
    place = "/contextProjection/fingerprint"
    expect_equal(again.text(place), first.text(place), "fingerprint of the same content")
    ingest(host, session, assistant("Paris."))
    ingest(host, session, user("And of Spain?"))
    other = assemble(host, session, projection="codex")
    expect(other.text(place) != first.text(place), "the content changed, but the fingerprint did not")


def _sum(parts: list[Object], member: str) -> int:
    return sum(value for part in parts if isinstance(value := part.get(member), int))


def _edited(current: list[Object], answer: Message) -> list[Object]:
    if answer.at("/result/messages", None) is not None:
        return answer.objects("/messages")
    result = list(current)
    for edit in reversed(answer.objects("/edits")):
        start, count, messages = edit["start"], edit["deleteCount"], edit["messages"]
        assert isinstance(start, int) and isinstance(count, int) and isinstance(messages, list)
        result[start : start + count] = [message for message in messages if isinstance(message, dict)]
    return result


@check("replacing", "CEP-VALID-5", needs=(_ASSEMBLE,))
def thinking_stays_with_its_call(server: Server) -> None:
    """A signed thinking block and its call are sent together and unchanged, or not at all."""
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
    """With `pruning` enabled, earlier messages change only when the epoch rises."""
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
                    sent[: len(before)] == before, "an earlier message changed, but the epoch did not rise"
                )
            rises += answer.number("/contextEpoch") > epoch
            before, epoch = sent, answer.number("/contextEpoch")
        expect(rises > 1, "14 long results never exceeded 6 000 tokens")


@check(
    "replacing", "CEP-MSG-12", needs=(_ASSEMBLE, "context/ingestBatch", "context/compact", "session/export")
)
def text_that_looks_like_a_mark(server: Server) -> None:
    """A user message that quotes a synthetic message is stored and sent unchanged."""
    host, session = server.shared(), server.name()
    store(host, session, chat(60))
    params: Json = {"sessionId": session, "tokenBudget": 3000, "force": True}
    host.result("context/compact", params)
    known = [str(message["content"]) for message in chat(60) if isinstance(message, dict)]
    sent = assemble(host, session, tokenBudget=4000).objects("/messages")
    ours = [text_of(message) for message in sent if text_of(message) not in known]
    quoted = user("You wrote this, word for word:\n" + (ours[0] if ours else "[summary]"))
    ingest(host, session, quoted)
    expect_equal(history(host, session)[-1], quoted, "the last stored message")
    _expect_sent_last(host, session, quoted)


@check(
    *("replacing", "CEP-MSG-9", "CEP-MSG-12"),
    needs=(_ASSEMBLE, "context/ingestBatch", "context/compact", "session/export"),
)
def forged_marks(server: Server) -> None:
    """A synthetic message with one letter changed counts as the host's: it is stored and sent unchanged."""
    host, session = server.shared(), server.name()
    store(host, session, chat(60))
    params: Json = {"sessionId": session, "tokenBudget": 3000, "force": True}
    host.result("context/compact", params)
    known = [str(message["content"]) for message in chat(60) if isinstance(message, dict)]
    sent = assemble(host, session, tokenBudget=4000).objects("/messages")
    for text in [text_of(message) for message in sent if text_of(message) not in known][:1]:
        forged = user(_altered(text))
        ingest(host, session, forged)
        expect_equal(history(host, session)[-1], forged, "the last stored message")
        _expect_sent_last(host, session, forged)


def _expect_sent_last(host: Host, session: str, newest: Json) -> None:
    """Require that the newest message is sent unchanged, as the host's last one."""
    sent = assemble(host, session, tokenBudget=6000).objects("/messages")
    stored = history(host, session)
    theirs = [message for message in sent if message in stored]
    expect_equal(theirs[-1:], [newest], "the host's last message in the answer")


def _altered(text: str) -> str:
    """The text with one letter changed, at its middle or after it."""
    middle = next((i for i in range(len(text) // 2, len(text)) if text[i].isalpha()), len(text) // 2)
    return f"{text[:middle]}{'x' if text[middle : middle + 1] != 'x' else 'y'}{text[middle + 1 :]}"
