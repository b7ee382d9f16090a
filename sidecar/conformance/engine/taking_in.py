"""What an engine does with messages that come in."""

from sidecar.conformance.engine.subject import Conversation
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.engine.talk import turn, user
from sidecar.conformance.expecting import expect, expect_equal

_area = ENGINE_SUITE.area("taking_in", "stores")


@_area.check()
async def takes_a_message_in(talk: Conversation) -> None:
    """A message that comes in is stored, and has an id and a turn."""
    outcome = await talk.client.ingest(talk.session, user("Hello"))
    expect(outcome.ingested and outcome.message_id and outcome.turn_id, f"it answered {outcome}")


@_area.check()
async def takes_a_message_in_once(talk: Conversation) -> None:
    """A message that comes again under its id is not taken in twice."""
    await talk.client.ingest(talk.session, user("Hello"), message_id="m1")
    again = await talk.client.ingest(talk.session, user("Hello"), message_id="m1")
    expect(not again.ingested, f"it answered {again}")


@_area.check()
async def keeps_messages_as_they_came(talk: Conversation) -> None:
    """What is stored is exported byte for byte, in order."""
    messages = turn(1)
    await talk.client.ingest_batch(talk.session, messages)
    page = [stored async for stored in talk.client.stored_messages(talk.session)]
    expect_equal([stored.decoded for stored in page], messages, "the exported messages")
