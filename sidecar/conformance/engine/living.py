"""How an engine gets through turns, background work, and its end."""

from sidecar.conformance.engine.subject import Conversation, expect_own
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.engine.talk import turn, turns, user
from sidecar.conformance.expecting import expect, expect_equal

_area = ENGINE_SUITE.area("living", "stores")


@_area.check()
async def takes_whole_turns(talk: Conversation) -> None:
    """A turn that is handed over whole is stored once, however often its key comes."""
    committed = await talk.client.commit_turn(talk.session, "turn-1", turn(1))
    again = await talk.client.commit_turn(talk.session, "turn-1", turn(1))
    expect_equal((committed.status, again.status), ("committed", "duplicate"), "what the commits answered")
    await talk.client.after_turn(talk.session, turn(2))
    page = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal(len(page), 8, "the number of stored messages")


@_area.check()
async def predicts(talk: Conversation) -> None:
    """What fits easily is predicted to fit, and what cannot is not."""
    await talk.tell(*turns(10))
    roomy = await talk.client.preflight(talk.session, 1_000_000)
    expect(roomy.fits and roomy.action == "none", f"with a million tokens it answered {roomy}")
    tight = await talk.client.preflight(talk.session, 50)
    expect(not tight.fits and tight.action == "compact", f"with 50 tokens it answered {tight}")


@_area.check()
async def maintains(talk: Conversation) -> None:
    """Work between turns is answered, whether or not there is any."""
    await talk.tell(*turns(2))
    outcome = await talk.client.maintain(talk.session, 10_000)
    expect_own(outcome.fallback_for)
    expect(outcome.bytes_freed >= 0, f"it answered {outcome}")


@_area.check()
async def begins_anew(talk: Conversation) -> None:
    """After it was disposed of, the next call goes on from the stored history."""
    await talk.tell(*turns(3), user("And now?"))
    before = await talk.assemble(100_000)
    await talk.client.dispose()
    after = await talk.assemble(100_000)
    expect_equal(after.bodies, before.bodies, "the messages")
