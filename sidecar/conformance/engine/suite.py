"""The checks for engines: metadata, ingest, assemble, compact, and the life cycle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sidecar.client.errors import ContextOverflow, HostCapabilityMissing
from sidecar.conformance.engine.subject import (
    ENGINE_SUITE,
    Conversation,
    EngineSubject,
    check,
    expect_own,
    serving,
)
from sidecar.conformance.kit import (
    CheckResult,
    Report,
    expect,
    expect_equal,
    expect_found,
    expect_raises,
    fail,
    run_suite,
)
from sidecar.messages.dialects import dialect

LEGACY = "legacy"


@check("declaring")
async def names_itself(talk: Conversation) -> None:
    """An engine has an id, a name and a version."""
    engine = talk.engine
    expect(engine.id and engine.name and engine.version, f"its info is {engine}")


@check("declaring")
async def is_listed(talk: Conversation) -> None:
    """The serving engine is listed as active and available."""
    listed = {engine.id: engine for engine in await talk.client.engines()}
    own = expect_found(listed.get(talk.engine.id), "the engine in the list")
    expect(own.active and own.available, f"it is listed as {own}")


@check("declaring")
async def is_healthy(talk: Conversation) -> None:
    """The doctor finds nothing wrong with the engine."""
    wrong = [
        check for check in (await talk.client.doctor()).checks if not check.ok and check.name == "engine"
    ]
    expect(not wrong, f"the doctor reports {wrong}")


Message = dict[str, Any]
RULES = {"role": "system", "content": "You are a careful assistant."}


def user(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """An assistant message."""
    return {"role": "assistant", "content": text}


def tool_use(number: int, result: str) -> list[Message]:
    """A tool call and its result."""
    call = {
        "id": f"call_{number}_x",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path":"file{number}"}}'},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}_x", "content": result},
    ]


def turn(number: int, words: int = 60) -> list[Message]:
    """A turn with a tool call; its texts differ from those of every other turn."""
    filler = " ".join(f"word{number}_{i}" for i in range(words))
    return [
        user(f"Question {number}: {filler}"),
        *tool_use(number, f"Result {number}: {filler}"),
        assistant(f"Answer {number}: {filler}"),
    ]


def turns(count: int, words: int = 60) -> list[Message]:
    """A system message, then `count` turns."""
    return [RULES, *(message for number in range(1, count + 1) for message in turn(number, words))]


def texts(messages: Sequence[Message]) -> list[str]:
    """The texts of messages; an empty string for a message without text."""
    return [content if isinstance(content := message.get("content"), str) else "" for message in messages]


@check("ingesting", needs=("stores",))
async def stores_a_message(talk: Conversation) -> None:
    """An ingested message is stored and gets an id and a turn."""
    outcome = await talk.client.ingest(talk.session, user("Hello"))
    expect(outcome.ingested and outcome.message_id and outcome.turn_id, f"it answered {outcome}")


@check("ingesting", needs=("stores",))
async def stores_a_message_once(talk: Conversation) -> None:
    """A message ingested again under its id is not stored twice."""
    await talk.client.ingest(talk.session, user("Hello"), message_id="m1")
    again = await talk.client.ingest(talk.session, user("Hello"), message_id="m1")
    expect(not again.ingested, f"it answered {again}")


@check("ingesting", needs=("stores",))
async def keeps_messages_as_they_came(talk: Conversation) -> None:
    """Stored messages are exported unchanged and in order."""
    messages = turn(1)
    await talk.client.ingest_batch(talk.session, messages)
    page = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal([stored.decoded for stored in page], messages, "the exported messages")


BUDGETS = (600, 1500, 6000)
_ROOMY = 100_000


def _problems(bodies: list[bytes]) -> list[str]:
    reader = dialect("openai")
    return [f"{p.rule}: {p.detail}" for p in reader.check([reader.read(body) for body in bodies])]


@check("assembling")
async def answers_an_empty_list(talk: Conversation) -> None:
    """An empty list for an unknown session gets an answer without messages."""
    answer = await talk.assemble(_ROOMY, [])
    expect_equal(answer.bodies, [], "the messages")


@check("assembling")
async def answers_a_session_never_seen(talk: Conversation) -> None:
    """The list for an unknown session comes back complete if it fits."""
    given = [user("Hello"), assistant("Hello yourself."), user("What now?")]
    answer = await talk.assemble(_ROOMY, given)
    returned = texts(answer.decoded)
    expect(all(text in returned for text in texts(given)), f"the answer has {returned}")


@check("assembling", needs=("stores",))
async def shows_what_fits(talk: Conversation) -> None:
    """The answer contains the newest user message unchanged."""
    await talk.ingest(*turns(2), user("And now?"))
    answer = await talk.assemble(_ROOMY)
    expect(user("And now?") in answer.decoded, "the newest message is not in the answer")


@check("assembling", needs=("budget", "stores"))
async def keeps_the_budget(talk: Conversation) -> None:
    """The estimate of an answer stays within every budget."""
    await talk.ingest(*turns(12), user("And now?"))
    for budget in BUDGETS:
        answer = await talk.assemble(budget)
        expect(answer.estimated_tokens <= budget, f"{answer.estimated_tokens} tokens for {budget}")
        expect(user("And now?") in answer.decoded, f"the newest message is missing with {budget} tokens")


@check("assembling", needs=("budget", "stores"))
async def says_what_it_needs(talk: Conversation) -> None:
    """A budget that is too small is refused, and the required budget succeeds."""
    await talk.ingest(*turns(2), user("word " * 400))
    refused = await expect_raises(ContextOverflow, talk.assemble(20), "a budget of 20")
    answer = await talk.assemble(refused.required)
    expect(answer.estimated_tokens <= refused.required, f"the answer has {answer.estimated_tokens} tokens")


@check("assembling", needs=("budget", "stores"))
async def is_valid(talk: Conversation) -> None:
    """Calls and results stay paired wherever the answer is cut."""
    for number in range(1, 9):
        await talk.ingest(*turn(number))
        for budget in BUDGETS:
            answer = await talk.assemble(budget)
            expect_equal(_problems(answer.bodies), [], f"problems after {number} turns with {budget} tokens")


@check("assembling", needs=("stores",))
async def is_repeatable(talk: Conversation) -> None:
    """Repeating a request yields the same messages and the same epoch."""
    await talk.ingest(*turns(6), user("And now?"))
    first = await talk.assemble(1500)
    again = await talk.assemble(1500)
    expect_equal(again.bodies, first.bodies, "the messages")
    expect_equal(again.context_epoch, first.context_epoch, "the epoch")


@check("assembling", needs=("stores",), level="should")
async def goes_on_from_its_answer(talk: Conversation) -> None:
    """While everything fits, each answer starts with the one before."""
    before: list[bytes] = []
    for number in range(1, 5):
        await talk.ingest(*turn(number, words=20))
        answer = await talk.assemble(_ROOMY)
        expect_equal(answer.bodies[: len(before)], before, f"the start of the answer after turn {number}")
        before = answer.bodies


@check("assembling", needs=("budget", "stores"))
async def knows_its_own_answer(talk: Conversation) -> None:
    """An answer sent back as the host's list is returned unchanged."""
    await talk.ingest(*turns(10), user("And now?"))
    first = await talk.assemble(1500)
    again = await talk.assemble(1500, list(first.messages or ()))
    expect_equal(again.bodies, first.bodies, "the messages")


@check("assembling", needs=("stores",))
async def keeps_sessions_apart(talk: Conversation) -> None:
    """The answer for one session contains nothing of another."""
    other = f"{talk.session}-other"
    await talk.ingest(user("The secret is heliotrope."))
    await talk.ingest(user("What is the secret?"), session=other)
    answer = await talk.assemble(_ROOMY, session=other)
    expect(not any("heliotrope" in text for text in texts(answer.decoded)), "the answer has the secret")


@check("compacting", needs=("owns-compaction", "stores"))
async def compacts_by_force(talk: Conversation) -> None:
    """A forced compaction does not enlarge the next answer, and gives a reason if it declines."""
    await talk.ingest(*turns(12), user("And now?"))
    before = await talk.assemble(100_000)
    outcome = await talk.client.compact(talk.session, 100_000, force=True)
    after = await talk.assemble(100_000)
    expect(outcome.ok, f"it answered {outcome}")
    expect(outcome.compacted or outcome.reason, "it declined without a reason")
    expect(
        after.estimated_tokens <= before.estimated_tokens,
        f"{after.estimated_tokens} tokens after {before.estimated_tokens}",
    )
    expect(user("And now?") in after.decoded, "the newest message is missing after the compaction")


@check("compacting", needs=("owns-compaction", "stores"))
async def loses_nothing(talk: Conversation) -> None:
    """A compaction leaves the stored history complete."""
    await talk.ingest(*turns(8))
    before = [stored async for stored in talk.client.stored_messages(talk.session)]
    await talk.client.compact(talk.session, 2000, force=True)
    after = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal([m.body for m in after], [m.body for m in before], "the history")


@check("compacting", needs=("owns-compaction", "stores"))
async def declines_with_a_reason(talk: Conversation) -> None:
    """A compaction with nothing to do is declined without an error."""
    await talk.ingest(user("Hello"))
    outcome = await talk.client.compact(talk.session, 100_000)
    expect(outcome.ok and (outcome.compacted or outcome.reason), f"it answered {outcome}")


@check("compacting")
async def says_when_the_host_cannot(talk: Conversation) -> None:
    """An engine that leaves compaction to the host fails with 1004 if the host cannot compact."""
    if talk.engine.owns_compaction:
        return
    try:
        outcome = await talk.client.compact(talk.session, 1000, force=True)
    except HostCapabilityMissing:
        return
    fail(f"it answered {outcome}")


@check("lifecycle", needs=("stores",))
async def stores_whole_turns(talk: Conversation) -> None:
    """A committed turn is stored once, however often its key is repeated."""
    committed = await talk.client.commit_turn(talk.session, "turn-1", turn(1))
    again = await talk.client.commit_turn(talk.session, "turn-1", turn(1))
    expect_equal((committed.status, again.status), ("committed", "duplicate"), "the status of the commits")
    await talk.client.after_turn(talk.session, turn(2))
    page = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal(len(page), 8, "the number of stored messages")


@check("lifecycle", needs=("stores",))
async def predicts(talk: Conversation) -> None:
    """`preflight` predicts correctly what fits and what does not."""
    await talk.ingest(*turns(10))
    roomy = await talk.client.preflight(talk.session, 1_000_000)
    expect(roomy.fits and roomy.action == "none", f"with a million tokens it answered {roomy}")
    tight = await talk.client.preflight(talk.session, 50)
    expect(not tight.fits and tight.action == "compact", f"with 50 tokens it answered {tight}")


@check("lifecycle", needs=("stores",))
async def maintains(talk: Conversation) -> None:
    """`maintain` is answered, whether or not there is work to do."""
    await talk.ingest(*turns(2))
    outcome = await talk.client.maintain(talk.session, 10_000)
    expect_own(outcome.fallback_for)
    expect(outcome.bytes_freed >= 0, f"it answered {outcome}")


@check("lifecycle", needs=("stores",))
async def resumes_after_dispose(talk: Conversation) -> None:
    """After `dispose`, the next call continues from the stored history."""
    await talk.ingest(*turns(3), user("And now?"))
    before = await talk.assemble(100_000)
    await talk.client.dispose()
    after = await talk.assemble(100_000)
    expect_equal(after.bodies, before.bodies, "the messages")


async def check_engine(
    subject: EngineSubject,
    *,
    patterns: Collection[str] = (),
    on_result: Callable[[CheckResult], object] | None = None,
) -> Report:
    """Check an engine and return the report; the engine's metadata decides which checks apply.

    Raises:
        ValueError: no check matches `patterns`.
        SidecarError: the engine cannot be selected.
    """
    async with serving(subject) as provide:
        async with provide() as first:
            engine = first.engine
        plain = engine.id == LEGACY
        declared = [*([] if plain else ["stores", "budget"])]
        if engine.owns_compaction:
            declared.append("owns-compaction")
        return await run_suite(
            ENGINE_SUITE,
            provide,
            subject=engine.id,
            declared=declared,
            patterns=patterns,
            on_result=on_result,
        )
