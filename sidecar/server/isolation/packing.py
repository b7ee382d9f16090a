"""Packs entries for an engine's process, each body only once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from sidecar.engine.entry import Entry
from sidecar.server.isolation.wire import PackedEntry

KEPT_SESSIONS = 64
"""Sessions of which is known what the process has; the process keeps as many."""

Fingerprint = tuple[int, int]


class Packer:
    """Remembers which bodies a process has been sent, session by session.

    It may be wrong: the process asks again, with `again`, for what it has not or has not any more.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[str, dict[str, Fingerprint]] = OrderedDict()

    def pack(self, session_id: str, entries: Iterable[Entry], *, again: bool = False) -> list[PackedEntry]:
        """The entries as they travel; `again` sends every body."""
        sent = self._of_session(session_id)
        if again:
            sent.clear()
        packed: list[PackedEntry] = []
        for entry in entries:
            print_ = (len(entry.raw), hash(entry.raw))
            known = sent.get(entry.message_id) == print_
            sent[entry.message_id] = print_
            packed.append(
                PackedEntry(
                    entry.message_id,
                    entry.place,
                    entry.turn,
                    entry.turn_id,
                    entry.role,
                    entry.timestamp_ms,
                    entry.heartbeat,
                    entry.tokens,
                    entry.position,
                    None if known else entry.raw,
                    entry.whole.raw if entry.whole else None,
                )
            )
        return packed

    def _of_session(self, session_id: str) -> dict[str, Fingerprint]:
        sent = self._sent.setdefault(session_id, {})
        self._sent.move_to_end(session_id)
        if len(self._sent) > KEPT_SESSIONS:
            self._sent.popitem(last=False)
        return sent
