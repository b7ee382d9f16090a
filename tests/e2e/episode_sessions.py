"""Sessions whose turns are handed over to a back end."""

from pathlib import Path

from msgspec import Raw

from tests.e2e.agent_host import AgentHost, Json
from tests.e2e.conversations import Speaker
from tests.webhook_server import WebhookServer

SECRET = "whsec_c2VjcmV0LWZvci10ZXN0cw=="


def to_webhook(server: WebhookServer, **values: object) -> Json:
    """A configuration that posts to this server."""
    return {"episodes": {"enabled": True, "backend": "webhook", "url": server.url, **values}}


def say(host: AgentHost, text: str, session: str = "s", **params: object) -> None:
    """One turn in which the user says `text`, committed as a host does it."""
    speaker = Speaker("openai", len(text))
    turn = [speaker.user(text), *speaker.assistant(f"You said: {text}")]
    host.call(
        "context/commitTurn",
        sessionId=session,
        advancementKey=f"{session} {text}",
        messages=[Raw(message) for message in turn],
        **params,
    )


def both(*texts: str) -> list[str]:
    """What user and assistant say in turns of `say`."""
    return [said for text in texts for said in (text, f"You said: {text}")]


def flush(host: AgentHost, session: str = "s") -> None:
    """What a host does now and then, and what begins a delivery."""
    host.call("context/compact", sessionId=session, tokenBudget=100_000)


def waiting(host: AgentHost) -> int:
    """How many episodes are buffered."""
    checks = host.call("engine/doctor")["checks"]
    return int(next(check["message"] for check in checks if check["name"] == "episodes").split()[0])


def until_taken(server: WebhookServer, host: AgentHost, turns: int) -> None:
    """Return once the episodes of so many turns were taken and deleted."""
    server.wait_for(lambda: len(server.texts) == 2 * turns)
    until_none_wait(host)


def until_none_wait(host: AgentHost) -> None:
    """Return once everything was delivered and deleted."""
    requests = 0
    while waiting(host):
        requests += 1
        assert requests < 100_000, host.errors()


def lines(path: Path) -> list[Json]:
    """The episodes in a file."""
    import msgspec

    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
