"""The episodes file has each episode once, whenever a process was killed."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from msgspec import json

from sidecar.episodes.file import FileBackend
from sidecar.store.buffer import Episode

_T = TypeVar("_T")


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(asyncio.wait_for(work, 30))


def _episode(rowid: int, text: str = "hello", session: str = "s", agent: str = "ada") -> Episode:
    message = {
        "messageId": f"m{rowid}",
        "role": "user",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "text": text,
    }
    payload = {
        "key": f"ep_{rowid}",
        "type": "episode",
        "version": 1,
        "namespace": "n",
        "sessionId": session,
        "turnId": f"t{rowid}",
        "startedAt": message["timestamp"],
        "endedAt": message["timestamp"],
        "messages": [message],
        "agentId": agent,
    }
    return Episode(rowid, json.encode(payload), session, None, 0)


def _keys(path: Path) -> list[str]:
    return [json.decode(line)["key"] for line in path.read_bytes().splitlines()]


def test_a_repetition_is_taken_and_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "episodes.jsonl"
    for _ in range(2):
        taken = _run(FileBackend(path).deliver([_episode(1), _episode(2)])).taken
        assert list(taken) == [1, 2]
    assert _keys(path) == ["ep_1", "ep_2"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_partial_line_left_by_a_killed_process_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    whole = _episode(1).payload + b"\n"
    path.write_bytes(whole + _episode(2).payload[:40])
    _run(FileBackend(path).deliver([_episode(2)]))
    assert _keys(path) == ["ep_1", "ep_2"]


def test_a_file_that_cannot_be_written_takes_nothing(tmp_path: Path) -> None:
    delivered = _run(FileBackend(tmp_path).deliver([_episode(1)]))
    assert not delivered.taken and delivered.problem


def test_erasing_a_session_leaves_the_others_and_what_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(b"a note of somebody else\n")
    backend = FileBackend(path)
    _run(backend.deliver([_episode(1), _episode(2, session="t"), _episode(3)]))
    _run(backend.forget("n", "s"))
    assert path.read_bytes() == b"a note of somebody else\n" + _episode(2, session="t").payload + b"\n"


def test_a_search_sees_one_agent_and_ranks_what_fits_best(tmp_path: Path) -> None:
    backend = FileBackend(tmp_path / "episodes.jsonl")
    episodes = [
        _episode(1, "The deploy of the parser needs the staging token"),
        _episode(2, "lunch was fine"),
        _episode(3, "the parser again"),
        _episode(4, "the staging token of the parser", agent="bob"),
    ]
    _run(backend.deliver(episodes))
    found = _run(backend.search("n", "ada", "which token does the parser need on staging?", 5))
    assert [hit.id for hit in found] == ["ep_1:m1", "ep_3:m3"]
    assert _run(backend.search("elsewhere", "ada", "parser", 5)) == []
