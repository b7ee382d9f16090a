"""The conformance suite for clients in any language; a driver runs the client against a simulated server."""

from importlib import import_module

from sidecar.conformance.client.driver import CLIENT_SUITE, LIMIT_S, Client, check, check_client
from sidecar.conformance.client.played_server import assembled
from sidecar.conformance.wire import Json, expect_no_problems

__all__ = ["CLIENT_SUITE", "LIMIT_S", "Client", "check_client"]

for _area in ("connection", "requests"):
    import_module(f"{__name__}.{_area}")


@check("schema", "CEP-BASE-1", "CEP-BASE-2", "CEP-BASE-4", "CEP-BASE-7", "CEP-BASE-8")
def every_message_keeps_the_schema(client: Client) -> None:
    """Every message that the client sent during this run matches its type in the method table."""
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
    expect_no_problems(client.problems)
