"""What the gateway saved: a line for each answered request, and sums of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from sidecar.gateway.request import Usage
from sidecar.private_files import make_folder

FILE = Path("gateway") / "savings.jsonl"
"""In the state directory. It holds counts and ids of sessions, nothing that was said."""


class Spent(Struct, frozen=True, rename="camel"):
    """What one request cost."""

    at: int
    """Seconds since 1970."""
    session: str
    model: str
    wanted: int
    """Tokens of the prompt that the program wanted to send: the provider's count, scaled by length."""
    sent: int
    """Tokens of the prompt that was sent, as the provider counted them."""
    cache_read: int
    cache_written: int
    epoch: int
    """The session's `contextEpoch`; 0 where no engine was asked."""


class Saved(Struct, frozen=True, rename="camel"):
    """What the requests of one session cost together."""

    session: str
    model: str
    requests: int
    wanted: int
    sent: int
    cache_read: int
    cache_written: int
    compactions_avoided: int
    """How often the engine cut the history where the program would have had to compact it."""


class SavingsFile:
    """Adds lines; several gateways may share the file."""

    def __init__(self, state_directory: Path) -> None:
        self._path = state_directory / FILE

    def add(self, spent: Spent) -> None:
        """Add one line.

        Raises:
            OSError: it cannot be written.
        """
        make_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(spent) + b"\n")
        finally:
            os.close(descriptor)


def spent_now(session: str, model: str, sizes: tuple[int, int], prompt: Usage, epoch: int) -> Spent:
    """A line about now: `sizes` are bytes wanted and sent, `prompt` is a `Usage`."""
    wanted, sent = sizes
    tokens = prompt.prompt if wanted == sent else round(prompt.prompt * wanted / max(1, sent))
    return Spent(int(time.time()), session, model, tokens, *prompt, epoch)


def read(state_directory: Path) -> Iterator[Spent]:
    """The lines; a torn one is passed over."""
    try:
        file = (state_directory / FILE).open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                yield msgspec.json.decode(line, type=Spent)
            except msgspec.MsgspecError:
                continue


def summed(lines: Iterable[Spent]) -> list[Saved]:
    """One row a session, in the order of their first requests."""
    rows: dict[str, list[Spent]] = {}
    for line in lines:
        rows.setdefault(line.session, []).append(line)
    return [
        Saved(
            session,
            spent[-1].model,
            len(spent),
            sum(each.wanted for each in spent),
            sum(each.sent for each in spent),
            sum(each.cache_read for each in spent),
            sum(each.cache_written for each in spent),
            len({each.epoch for each in spent if each.wanted > each.sent}),
        )
        for session, spent in rows.items()
    ]
