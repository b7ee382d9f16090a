"""Runs one replay from file to figures."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common
from sidecar.cli.printing import console
from sidecar.cli.replay.figures import Replay
from sidecar.cli.replay.judging import TOLERANCE_ESTIMATE, TOLERANCE_EXACT
from sidecar.cli.replay.recording import Recording, Tally, read_recording
from sidecar.cli.replay.runtime import Plan, Played, Runtime
from sidecar.cli.replay.summary import by_turn, is_good, summarised
from sidecar.client.errors import SessionNotFound
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.importers.transcript import TranscriptError
from sidecar.tokens.choose import CounterUnavailable, counter

NAMESPACE = "replay"


class Request(NamedTuple):
    """What to replay, with which engine."""

    transcript: Path
    format: str | None
    engine: str | None
    exact: bool
    """Count with a vocabulary, or fail."""
    plan: Plan


class Finished(NamedTuple):
    """A replay that is over."""

    figures: Replay
    newest: list[bytes]
    """The messages of the last answer."""


def replay(common: Common, request: Request) -> Finished:
    """Play the transcript against a fresh sidecar, in a state directory of its own unless one is named.

    Raises:
        CommandFailed: the transcript cannot be read, or cannot be counted exactly.
    """
    try:
        recording = read_recording(request.transcript, request.format)
        tally = Tally(recording.dialect, counter("o200k" if request.exact else "auto"))
    except (TranscriptError, CounterUnavailable) as error:
        raise CommandFailed(f"{request.transcript.name}: {error}") from None
    if not recording.steps:
        raise CommandFailed(f"{request.transcript.name}: the transcript has no messages")
    began = time.perf_counter()
    with _state(common) as placed, _progress(recording) as advance:
        client = client_for(
            placed,
            engine=request.engine,
            message_format=recording.message_format,
            namespace=NAMESPACE,
            config={"tokens": {"counter": "o200k"}} if request.exact else None,
        )

        async def play(client: SidecarClient) -> tuple[str, Played]:
            await _refuse_known(client, request.plan.session_id)
            return client.engine.id, await Runtime(client, recording, tally, request.plan, advance).play()

        engine, played = with_client(client, play)
    seconds = time.perf_counter() - began
    return Finished(_figures(request, recording, tally, engine, played, seconds), played.newest)


def _figures(
    request: Request, recording: Recording, tally: Tally, engine: str, played: Played, seconds: float
) -> Replay:
    full = tally.total([step.message for step in recording.steps])
    summary = summarised(recording, played, full, seconds)
    return Replay(
        ok=is_good(summary),
        transcript=recording.name,
        message_format=recording.message_format,
        engine=engine,
        budget=request.plan.budget,
        style=request.plan.style,
        counter=tally.counter.name,
        tolerance=TOLERANCE_EXACT if tally.counter.exact else TOLERANCE_ESTIMATE,
        skipped=recording.skipped,
        summary=summary,
        turns=by_turn(played.calls),
        calls=played.calls,
    )


async def _refuse_known(client: SidecarClient, session_id: str) -> None:
    try:
        await client.session(session_id)
    except SessionNotFound:
        return
    raise CommandFailed(
        f"the state directory has a session {session_id!r} already; name another one with --session, "
        f"or erase it: context-sidecar sessions delete {session_id} --namespace {NAMESPACE}"
    )


@contextmanager
def _state(common: Common) -> Generator[Common]:
    if common.state_dir is not None:
        yield common
        return
    with TemporaryDirectory(prefix="context-sidecar-") as folder:
        yield common._replace(state_dir=Path(folder))


class _Advance:
    """Moves the progress bar by one message."""

    def __call__(self) -> None:
        """Nothing is shown."""


@contextmanager
def _progress(recording: Recording) -> Generator[_Advance]:
    """A bar on standard error, where that is a terminal."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield _Advance()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("replaying", total=len(recording.steps))

        class Advance(_Advance):
            def __call__(self) -> None:
                bar.advance(task)

        yield Advance()
