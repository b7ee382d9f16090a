"""How an engine makes room."""

from sidecar.client.errors import HostCapabilityMissing
from sidecar.conformance.engine.subject import Conversation
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.engine.talk import turns, user
from sidecar.conformance.expecting import expect, expect_equal, fail

_area = ENGINE_SUITE.area("compacting")


@_area.check("owns-compaction", "stores")
async def compacts_by_force(talk: Conversation) -> None:
    """A forced compaction makes the next answer no larger, and says so truly."""
    await talk.tell(*turns(12), user("And now?"))
    before = await talk.assemble(100_000)
    outcome = await talk.client.compact(talk.session, 100_000, force=True)
    after = await talk.assemble(100_000)
    expect(outcome.ok, f"it answered {outcome}")
    expect(outcome.compacted or outcome.reason, "it declined without a reason")
    expect(
        after.estimated_tokens <= before.estimated_tokens,
        f"{after.estimated_tokens} tokens after {before.estimated_tokens}",
    )
    expect(user("And now?") in after.decoded, "the newest message is not in the answer any more")


@_area.check("owns-compaction", "stores")
async def loses_nothing(talk: Conversation) -> None:
    """After a compaction the history is whole."""
    await talk.tell(*turns(8))
    before = [stored async for stored in talk.client.stored_messages(talk.session)]
    await talk.client.compact(talk.session, 2000, force=True)
    after = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal([m.body for m in after], [m.body for m in before], "the history")


@_area.check("owns-compaction", "stores")
async def declines_with_a_reason(talk: Conversation) -> None:
    """Where there is nothing to do, a compaction is declined, which is no error."""
    await talk.tell(user("Hello"))
    outcome = await talk.client.compact(talk.session, 100_000)
    expect(outcome.ok and (outcome.compacted or outcome.reason), f"it answered {outcome}")


@_area.check()
async def says_when_the_host_cannot(talk: Conversation) -> None:
    """An engine that leaves compaction to the host refuses with 1004 where the host cannot."""
    if talk.engine.owns_compaction:
        return
    try:
        outcome = await talk.client.compact(talk.session, 1000, force=True)
    except HostCapabilityMissing:
        return
    fail(f"it answered {outcome}")
