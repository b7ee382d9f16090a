"""How a client begins."""

from __future__ import annotations

import os

from sidecar.conformance.client.driver import failed_with
from sidecar.conformance.client.played import greeting
from sidecar.conformance.client.subject import Client
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.wire import Json, Message
from sidecar.protocol.lifecycle import LATEST

_OPTIONS = "/params/initializationOptions/contextEngine"
_COMPLETE = "runtime/complete"


def _capabilities(hello: Message) -> list[Json]:
    found = hello.at(f"{_OPTIONS}/hostCapabilities", None)
    return list(found) if isinstance(found, list) else []


@check("handshake", "CEP-LIFE-1", "CEP-INIT-2", "CEP-BASE-1")
def initialize_comes_first(client: Client) -> None:
    """The first message is `initialize`, in a version that there is; nothing comes before its answer."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        first = server.next()
        expect_equal(first.method, "initialize", "the first message")
        version = first.at(f"{_OPTIONS}/protocolVersion", None)
        expect(version in (None, LATEST), f"protocolVersion is {version}")
        server.answer(first, greeting())
        stage.driver.result("open")
        stage.ask("next", "engine/list")
        server.answer(server.request("engine/list"), {"engines": []})
        stage.driver.result("next")


@check("handshake", "CEP-LIFE-4", level="should")
def initialized_follows(client: Client) -> None:
    """The notification `initialized` comes behind the answer, before any other request."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("next", "engine/list")
        server.request("engine/list")
        seen = [message.method for message in server.notifications]
        expect("initialized" in seen, f"notifications before the first request: {seen}")


@check("handshake", "CEP-LIFE-11", level="should")
def process_id(client: Client) -> None:
    """`processId` names a living process, so that the server ends with its host."""
    with client.stage() as stage:
        pid = stage.open().hello.at("/params/processId", None)
        expect(isinstance(pid, int) and _lives(pid), f"processId is {pid}")


@check("handshake", "CEP-INIT-4", "CEP-HOST-1", needs=(_COMPLETE,))
def what_it_declares(client: Client) -> None:
    """`hostCapabilities` has exactly the requests that the runtime answers."""
    for answers in ({}, {_COMPLETE: {"result": {"text": "yes"}}}):
        with client.stage() as stage:
            declared = _capabilities(stage.open(answers=answers).hello)
            asked = sorted(str(name) for name in declared if name != "assembleDelta")
            expect_equal(asked, sorted(answers), "hostCapabilities")


@check("handshake", "CEP-INIT-13", "CEP-BASE-9")
def a_refusal_is_told(client: Client) -> None:
    """Where `initialize` fails, the runtime gets code, message and data, and no process is left behind."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        server.refuse(server.request("initialize"), 1001, "The engine is not there.", engineId="gone")
        failure = stage.driver.failure("open")
        expect_equal(failed_with(failure), "answer 1001", "the failure")
        expect("The engine is not there." in str(failure.get("message")), f"the message: {failure}")
        data = failure.get("data")
        expect(isinstance(data, dict) and data.get("engineId") == "gone", f"data is {data}")
        stage.driver.do("close", "close")
        server.end_of_input()


@check("handshake", "CEP-BASE-6", "CEP-INIT-12", "CEP-VER-2")
def an_offer_of_a_newer_server(client: Client) -> None:
    """Members of the answer that the client does not know are ignored."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        offer = greeting(
            noSuchMember={"deep": [1]}, methods=["context/ingest", "future/thing"], messageFormats=["to-come"]
        )
        server.answer(server.request("initialize"), {**offer, "noSuchMember": [None]})
        stage.driver.result("open")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
