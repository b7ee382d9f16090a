"""The inspector's pages over real HTTP, from the real command."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sidecar.cli.inspector.players import Asked, Players
from sidecar.client import SidecarClient
from sidecar.client.messages import ExportedPage
from sidecar.protocol.base import MessageFormat
from tests.client_kit import (
    LIMIT_S,
    SERVE,
    Message,
    assistant,
    run_cli,
    user,
    with_sidecar,
    write_lines,
)
from tests.e2e.inspector_process import Inspector

DEMO = Path("sidecar/cli/demo_session.jsonl").absolute()
HOSTILE = (
    "<script>alert(1)</script> [link](javascript:alert(1)) ![x](http://evil.example/x.png) "
    "\u202eabc <img src=x onerror=alert(1)>"
)


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspector]:
    found = Inspector(tmp_path_factory.mktemp("state"), str(DEMO), "--engine", "default", "--budget", "6k")
    yield found
    assert found.close() == 0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Inspector, Path]]:
    state = tmp_path_factory.mktemp("state")

    async def tell(client: SidecarClient) -> None:
        for number in range(6):
            await client.ingest("talk", user(f"Question {number} {HOSTILE}"), message_id=f"u{number}")
            await client.ingest("talk", assistant(f"Answer {number}"), message_id=f"a{number}")

    with_sidecar(state, tell, engine="full")
    found = Inspector(state, "--engine", "full")
    yield found, state
    assert found.close() == 0


TALK = urlencode({"source": "session/talk", "engine": "full", "budget": 128000})


def test_a_transcript_is_shown_with_the_figures_that_replay_finds(demo: Inspector, tmp_path: Path) -> None:
    arguments = ("--engine", "default", "--budget", "6k", "--assemble-once-per-turn", "--json")
    demo.page("turn", source="transcript", engine="default", budget=6000)  # until all of it is played
    text = words(demo.page("session", source="transcript", engine="default", budget=6000))
    assert "What engine default makes of this conversation within 6,000 tokens" in text
    played = json.loads(run_cli("replay", str(DEMO), *arguments, state_dir=tmp_path).stdout)
    assert f"t{played['summary']['turns']} " in text
    assert re.search(r"The epoch rose, and earlier messages made room, \d+ times?: at t\d+", text)
    assert f"{played['summary']['fullTokens']:,}" in text
    saving = r"the engine (saves|costs more by) \$0\.\d{4} \(\d+%\)"
    for way in ("sending everything", "a sliding window"):
        assert re.search(rf"{way} \$0\.\d{{4}} {saving}", text)


def test_a_turn_shows_what_was_sent_what_was_not_and_why(demo: Inspector) -> None:
    html = demo.page("turn", source="transcript", engine="default", budget=6000, turn=9)
    text = words(html)
    assert "Summary of earlier messages" in text
    assert re.search(r"messages 2 to \d+ , [\d,]+ tokens, not sent: .*a summary stands for it", text)
    assert re.search(r"stands for messages 2 to \d+: [\d,]+ tokens in full", text)
    assert "sent in full: among the newest messages" in text
    assert "sent in full: system message" in text
    assert "[ctx:" not in text
    assert "previous turn" in text


def test_two_engines_are_compared_over_the_same_turn(demo: Inspector) -> None:
    query = {"source": "transcript", "engine": "default", "budget": 6000, "turn": 9, "otherEngine": "full"}
    text = words(demo.page("compare", **query))
    assert "t9, default, 6,000 tokens" in text
    assert "t9, full, 6,000 tokens" in text
    assert re.search(r"In both: \d+ messages", text)
    assert "Only in the first Summary of earlier messages" in text
    query |= {"otherEngine": "default"}
    assert "Both contexts are the same." in words(demo.page("compare", **query))


def opened(inspector: Inspector, html: str) -> str:
    """The page behind the first link `open` of a page."""
    found = re.search(r'href="(summary\?[^"]+)">open<', html)
    assert found is not None
    status, page, _ = inspector.ask(inspector.below + unescape(found[1]))
    assert status == 200
    return page


def test_a_summary_opens_to_the_messages_that_it_stands_for(demo: Inspector) -> None:
    query: dict[str, object] = {"source": "transcript", "budget": 6000, "turn": 9}
    html = demo.page("turn", engine="default", **query)
    stands_for = re.search(r"stands for messages 2 to (\d+)", words(html))
    assert stands_for is not None
    page = words(opened(demo, html))
    rows = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
    assert f"What it stands for: {int(stands_for[1]) - 1} messages" in page
    assert " ".join(rows[1]["content"].split())[:60] in page
    query |= {"engine": "default", "ref": "nothing"}
    status, _, _ = demo.ask(f"{demo.below}summary?{urlencode(query)}")
    assert status == 404


def test_a_summary_of_summaries_opens_to_these(demo: Inspector) -> None:
    html = demo.page("turn", source="transcript", engine="lossless", budget=3000, turn=12)
    page = opened(demo, html)
    assert "Condensed from these summaries" in page
    assert "What it stands for: " in words(page)
    source = re.search(r'href="(summary\?[^"]+)">summary 1, of (\d+) messages', page)
    assert source is not None
    _, below, _ = demo.ask(demo.below + unescape(source[1]))
    assert f"What it stands for: {source[2]} messages" in words(below)


def test_what_the_provider_reported_is_priced_and_prices_can_be_edited(tmp_path: Path) -> None:
    def row(number: int, role: str, text: str, **usage: int) -> Message:
        message = {"role": role, "id": f"m{number}", "content": [{"type": "text", "text": text}]}
        message |= {"usage": usage} if usage else {}
        return {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "message": message}

    first = {"cache_creation_input_tokens": 4000, "cache_read_input_tokens": 0, "input_tokens": 100}
    then = {"cache_creation_input_tokens": 500, "cache_read_input_tokens": 4000, "input_tokens": 200}
    rows = [row(1, "user", "One?"), row(2, "assistant", "1", **first, output_tokens=1000)]
    rows += [row(3, "user", "Two?"), row(4, "assistant", "2", **then, output_tokens=3000)]
    inspector = Inspector(tmp_path, str(write_lines(tmp_path / "claude.jsonl", rows)), "--engine", "full")
    try:
        query = {"source": "transcript", "engine": "full", "budget": 128000}
        inspector.page("turn", **query)
        text = words(inspector.page("session", **query))
        assert "2 calls of the recorded runtime" in text
        assert "8,800 prompt tokens, of these 4,000 read from the cache and 4,500 written to it" in text
        # 300 plain at 3, 4,500 written at 3.75, 4,000 read at 0.30, 4,000 of output at 15, by the million.
        assert "$0.0790" in text
        assert "cache reads" in inspector.page("chart.svg", what="tokens", **query)
        form = {"new": "6", "cached": "0.5", "plain": "5", "output": "25"}
        assert inspector.post(f"prices?{urlencode(query)}", form) == 303
        # 300 at 5, 4,500 at 6, 4,000 at 0.5, 4,000 at 25.
        assert "$0.1305" in words(inspector.page("session", **query))
        assert inspector.post(f"prices?{urlencode(query)}", {**form, "new": "cheap"}) == 400
    finally:
        assert inspector.close() == 0


@pytest.mark.parametrize("what", ["tokens", "cost"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_are_pictures(demo: Inspector, what: str, theme: str) -> None:
    svg = demo.page("chart.svg", source="transcript", engine="default", budget=6000, what=what, theme=theme)
    assert svg.startswith("<svg")
    assert svg.count("<path") >= 3


@pytest.mark.parametrize(
    ("path", "host", "method", "origin", "status"),
    [
        ("", None, "GET", None, 200),
        ("", "evil.example", "GET", None, 403),
        ("", "localhost", "GET", None, 403),
        ("/wrong/", None, "GET", None, 404),
        ("/", None, "GET", None, 404),
        ("/%C3%A9/", None, "GET", None, 404),
        ("prices?source=session/talk", None, "POST", "http://evil.example", 403),
        ("act?source=session/talk", None, "POST", "http://evil.example", 403),
        ("act?source=session/talk", None, "POST", None, 403),
    ],
)
def test_only_who_has_the_address_is_answered(
    stored: tuple[Inspector, Path], path: str, host: str | None, method: str, origin: str | None, status: int
) -> None:
    inspector, _ = stored
    headers = {"Host": host} if host else {}
    headers |= {"Origin": origin} if origin else {}
    where = path if path.startswith("/") else inspector.below + path
    found, text, answer = inspector.ask(where, method=method, headers=headers)
    assert found == status
    assert ("talk" in text) is (status == 200)
    if status == 200:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize("line", ["GET /%C3%A9/ HTTP/1.1", "OPTIONS * HTTP/1.1", "GET / HTTP/1.1\r\nHost: b"])
def test_odd_requests_of_others_are_refused_and_leave_the_terminal_alone(tmp_path: Path, line: str) -> None:
    inspector = Inspector(tmp_path, str(DEMO))
    host, _, port = inspector.host.partition(":")
    with socket.create_connection((host, int(port)), LIMIT_S) as connection:
        connection.sendall(f"{line}\r\nHost: {inspector.host}\r\n\r\n".encode())
        assert connection.recv(4096).split()[1] in (b"400", b"404")
    inspector.process.send_signal(signal.SIGTERM)
    assert inspector.process.stderr is not None
    assert inspector.process.stderr.read() == ""
    inspector.close()


def test_what_a_message_says_stays_text(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored
    html = inspector.page("turn", source="session/talk", engine="full", budget=128000)
    assert HOSTILE.split()[0] in words(html)
    body = html[html.index("<main") :]
    for tag in ("<script", "<img", '<a href="javascript', '<a href="http'):
        assert tag not in body


def test_looking_changes_nothing(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored
    inspector.page("turn", source="session/talk", engine="full", budget=2000)
    before = inspector.page("state", source="session/talk", engine="full", budget=2000)
    inspector.page("session", source="session/talk", engine="full", budget=2000)
    inspector.page("turn", source="session/talk", engine="full", budget=3000, turn=3)
    assert inspector.page("state", source="session/talk", engine="full", budget=2000) == before


def test_a_session_is_followed_and_found(stored: tuple[Inspector, Path]) -> None:
    inspector, state = stored
    assert "talk" in words(inspector.page(""))
    before = inspector.page("state", source="session/talk")

    async def tell(client: SidecarClient) -> None:
        await client.ingest("talk", user("And where is the kumquat?"), message_id="new")

    with_sidecar(state, tell, engine="full")
    assert inspector.page("state", source="session/talk") != before
    assert "kumquat" in inspector.page("turn", source="session/talk", engine="full", budget=128000)
    assert "<mark>KUMQUAT</mark>" in inspector.page("search", q="KUMQUAT").replace("kumquat", "KUMQUAT")
    assert "<script" not in inspector.page("search", q="<script>")[400:]
    assert "No session has" in words(inspector.page("search", q="nowhere-to-be-found"))


def test_a_page_pins_unpins_forks_and_compacts(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored
    assert inspector.act(TALK, "pin", "u1") == 303
    page = inspector.page("session", source="session/talk", engine="full", budget=128000)
    found = re.search(r'name="value" value="([^"]+)">Unpin', page)
    assert found is not None
    assert inspector.act(TALK, "unpin", found[1]) == 303
    assert inspector.act(TALK, "fork", "copy") == 303
    assert inspector.act(TALK, "compact") == 303
    assert inspector.act(TALK, "erase everything") == 400
    assert "copy" in words(inspector.page(""))


def test_a_session_that_does_not_exist_is_a_problem_that_is_named(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored
    status, text, _ = inspector.ask(f"{inspector.below}session?source=session/nope")
    assert status == 502
    assert "Traceback" not in text


def test_a_file_that_is_no_transcript_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    found = run_cli("inspect", str(file), "--no-open", state_dir=tmp_path)
    assert found.returncode == 1
    assert "no messages" in found.stderr


def test_a_long_transcript_is_shown_while_it_is_played(tmp_path: Path) -> None:
    rows = [
        {"role": role, "content": f"{role} {turn}"} for turn in range(3000) for role in ("user", "assistant")
    ]
    file = tmp_path / "long.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    inspector = Inspector(tmp_path / "state", str(file), "--engine", "full")
    try:
        query = {"source": "transcript", "engine": "full", "budget": 128000}
        assert "more messages are being played" in words(inspector.page("session", **query))
        first = inspector.page("state", **query)
        inspector.page("session", **query)
        assert inspector.page("state", **query) != first
    finally:
        assert inspector.close() == 0


def test_a_session_is_read_from_the_store_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    export = SidecarClient.export

    def counted(self: SidecarClient, session_id: str) -> AsyncIterator[ExportedPage]:
        reads.append(session_id)
        return export(self, session_id)

    monkeypatch.setattr(SidecarClient, "export", counted)

    async def look(store: SidecarClient) -> None:
        def start(engine: str | None, _: MessageFormat) -> SidecarClient:
            config = {"store": {"kind": "memory"}}
            return SidecarClient.start(SERVE, state_dir=tmp_path / "play", engine=engine, config=config)

        await store.ingest("talk", user("First?"))
        players = Players(store, None, start)
        try:
            asked, other = (Asked("session/talk", engine, 8000) for engine in ("full", "default"))
            await players.played(asked, until=None)
            await players.played(other, until=None)
            assert reads == ["talk"]
            await store.ingest("talk", assistant("Second."))
            history, _, _ = await players.played(asked, until=None)
            assert (reads, len(history.steps)) == (["talk"] * 2, 2)
        finally:
            await players.close()

    with_sidecar(tmp_path, look, engine="full")
