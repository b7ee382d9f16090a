"""What an engine lets the model see."""

from sidecar.client.errors import ContextOverflow
from sidecar.conformance.engine.subject import Conversation
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.engine.talk import assistant, texts, turn, turns, user
from sidecar.conformance.expecting import expect, expect_equal, expect_raises
from sidecar.messages.dialects import dialect

BUDGETS = (600, 1500, 6000)
_area = ENGINE_SUITE.area("assembling")
_ROOMY = 100_000


def _problems(bodies: list[bytes]) -> list[str]:
    reader = dialect("openai")
    return [f"{p.rule}: {p.detail}" for p in reader.check([reader.read(body) for body in bodies])]


@_area.check()
async def answers_an_empty_list(talk: Conversation) -> None:
    """An empty list of a session that was never seen gives an answer, with no message in it."""
    answer = await talk.assemble(_ROOMY, [])
    expect_equal(answer.bodies, [], "the messages")


@_area.check()
async def answers_a_session_never_seen(talk: Conversation) -> None:
    """The list of a session that was never seen comes back whole where there is room."""
    given = [user("Hello"), assistant("Hello yourself."), user("What now?")]
    answer = await talk.assemble(_ROOMY, given)
    said = texts(answer.decoded)
    expect(all(text in said for text in texts(given)), f"the answer says {said}")


@_area.check("stores")
async def shows_what_fits(talk: Conversation) -> None:
    """The newest message of the user is in the answer, as it came."""
    await talk.tell(*turns(2), user("And now?"))
    answer = await talk.assemble(_ROOMY)
    expect(user("And now?") in answer.decoded, "the newest message is not in the answer")


@_area.check("stores", "budget")
async def keeps_the_budget(talk: Conversation) -> None:
    """The estimate of an answer is within its budget, whatever that is."""
    await talk.tell(*turns(12), user("And now?"))
    for budget in BUDGETS:
        answer = await talk.assemble(budget)
        expect(answer.estimated_tokens <= budget, f"{answer.estimated_tokens} tokens for {budget}")
        expect(user("And now?") in answer.decoded, f"the newest message is missing with {budget} tokens")


@_area.check("stores", "budget")
async def says_what_it_needs(talk: Conversation) -> None:
    """A budget that is too small is refused, and a budget of what is required succeeds."""
    await talk.tell(*turns(2), user("word " * 400))
    refused = await expect_raises(ContextOverflow, talk.assemble(20), "a budget of 20")
    answer = await talk.assemble(refused.required)
    expect(answer.estimated_tokens <= refused.required, f"it takes {answer.estimated_tokens} tokens")


@_area.check("stores", "budget")
async def is_valid(talk: Conversation) -> None:
    """No call is without its result, and no result without its call, wherever the answer is cut."""
    for number in range(1, 9):
        await talk.tell(*turn(number))
        for budget in BUDGETS:
            answer = await talk.assemble(budget)
            expect_equal(_problems(answer.bodies), [], f"problems after {number} turns with {budget} tokens")


@_area.check("stores")
async def is_repeatable(talk: Conversation) -> None:
    """The same question has the same answer, and the same epoch."""
    await talk.tell(*turns(6), user("And now?"))
    first = await talk.assemble(1500)
    again = await talk.assemble(1500)
    expect_equal(again.bodies, first.bodies, "the messages")
    expect_equal(again.context_epoch, first.context_epoch, "the epoch")


@_area.check("stores", level="should")
async def goes_on_from_its_answer(talk: Conversation) -> None:
    """As long as everything fits, each answer begins with the one before."""
    before: list[bytes] = []
    for number in range(1, 5):
        await talk.tell(*turn(number, words=20))
        answer = await talk.assemble(_ROOMY)
        expect_equal(answer.bodies[: len(before)], before, f"the start of the answer after turn {number}")
        before = answer.bodies


@_area.check("stores", "budget")
async def knows_its_own_answer(talk: Conversation) -> None:
    """Its own answer, handed back as the host's list, comes back unchanged."""
    await talk.tell(*turns(10), user("And now?"))
    first = await talk.assemble(1500)
    again = await talk.assemble(1500, list(first.messages or ()))
    expect_equal(again.bodies, first.bodies, "the messages")


@_area.check("stores")
async def keeps_sessions_apart(talk: Conversation) -> None:
    """What one session holds is never in the answer of another."""
    other = f"{talk.session}-other"
    await talk.tell(user("The secret is heliotrope."))
    await talk.tell(user("What is the secret?"), session=other)
    answer = await talk.assemble(_ROOMY, session=other)
    expect(not any("heliotrope" in text for text in texts(answer.decoded)), "it told the secret")
