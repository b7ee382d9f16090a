"""What an engine says about itself."""

from sidecar.conformance.engine.subject import Conversation
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.expecting import expect, expect_found

_area = ENGINE_SUITE.area("declaring")


@_area.check()
async def names_itself(talk: Conversation) -> None:
    """An engine has an id, a name and a version."""
    engine = talk.engine
    expect(engine.id and engine.name and engine.version, f"its info is {engine}")


@_area.check()
async def is_listed(talk: Conversation) -> None:
    """The engine that serves is listed as active and available."""
    listed = {engine.id: engine for engine in await talk.client.engines()}
    own = expect_found(listed.get(talk.engine.id), "the engine in the list")
    expect(own.active and own.available, f"it is listed as {own}")


@_area.check()
async def is_healthy(talk: Conversation) -> None:
    """The doctor finds nothing wrong with the engine."""
    wrong = [
        check for check in (await talk.client.doctor()).checks if not check.ok and check.name == "engine"
    ]
    expect(not wrong, f"the doctor says {wrong}")
