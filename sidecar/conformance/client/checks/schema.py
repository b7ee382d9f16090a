"""What all messages of a client have in common."""

from __future__ import annotations

from sidecar.conformance.client.played import assembled
from sidecar.conformance.client.subject import Client
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect
from sidecar.conformance.server.wire import Json

_SHOWN = 5


@check("schema", "CEP-BASE-1", "CEP-BASE-2", "CEP-BASE-4", "CEP-BASE-7", "CEP-BASE-8")
def every_message_keeps_the_schema(client: Client) -> None:
    """All messages that the client sent during this run are of the types that the method table names."""
    with client.stage() as stage:
        server = stage.open()
        message: Json = {"role": "user", "content": "x"}
        stage.ask("ingest", "context/ingest", sessionId="s", message=message)
        stored: Json = {"ingested": True, "messageId": "m1", "turnId": "t1"}
        server.answer(server.request("context/ingest"), stored)
        stage.driver.result("ingest")
        stage.driver.do("assemble", "assemble", params={"sessionId": "s", "tokenBudget": 4000})
        server.answer(server.request("context/assemble"), assembled([message], "r1"))
        stage.driver.result("assemble")
        stage.driver.do("close", "close")
        server.finish()
        stage.driver.result("close")
    more = len(client.problems) - _SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    expect(not client.problems, "; ".join(client.problems[:_SHOWN]) + rest)
