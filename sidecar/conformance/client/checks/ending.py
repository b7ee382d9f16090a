"""How a client ends."""

from __future__ import annotations

from sidecar.conformance.client.subject import Client
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect, expect_equal


@check("ending", "CEP-LIFE-7", "CEP-LIFE-9")
def in_order(client: Client) -> None:
    """`shutdown` is sent and its answer waited for, then `exit`."""
    with client.stage() as stage:
        server = stage.open()
        stage.driver.do("close", "close")
        request = server.request("shutdown")
        early = [message.method for message in server.notifications if message.method == "exit"]
        expect_equal(early, [], "what comes before the answer to shutdown")
        server.answer(request, None)
        server.notification("exit")
        server.exit(0)
        stage.driver.result("close")


@check("ending", "CEP-LIFE-9")
def by_force(client: Client) -> None:
    """A server that answers no `shutdown` and takes no SIGTERM is ended all the same."""
    with client.stage() as stage:
        server = stage.open()
        server.grow_deaf()
        stage.driver.do("close", "close")
        server.request("shutdown")
        stage.driver.report("close")
        expect(server.gone(2), "the process outlives its client")
