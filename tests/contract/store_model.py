"""A store as simple as can be: every session has lists of its own, and forks copy them."""

from copy import copy
from dataclasses import dataclass, field


@dataclass
class Entry:
    """One message."""

    text: str
    opens: bool
    heartbeat: bool
    host_id: str | None
    inner_id: str | None
    label: str | None
    message_id: str = ""
    turn: int = 0
    turn_id: str = ""
    tokens: int | None = None


@dataclass
class Session:
    """One session: its messages, and the ids it ever had."""

    entries: list[Entry] = field(default_factory=list[Entry])
    used_ids: set[str] = field(default_factory=set[str])

    def double(self, entry: Entry) -> int | None:
        """The index of the entry that this one repeats."""
        for index, other in enumerate(self.entries):
            if entry.host_id is not None and other.message_id == entry.host_id:
                return index
        for index, other in enumerate(self.entries):
            if entry.inner_id is not None and other.inner_id == entry.inner_id:
                return None if entry.host_id is not None and other.host_id is not None else index
        return None

    def append(self, entry: Entry) -> None:
        """Put a new entry at the end."""
        last = self.entries[-1] if self.entries else None
        entry.turn, entry.turn_id = (last.turn, last.turn_id) if last else (1, "t1")
        opened = entry.turn > 1 or any(each.opens for each in self.entries)
        entry.opens = entry.opens and not entry.heartbeat
        if not entry.heartbeat and entry.label is not None and (last is None or entry.label != entry.turn_id):
            entry.turn += last is not None
            entry.turn_id = entry.label
            entry.opens = True
        elif entry.opens and entry.label is None and opened:
            entry.turn += 1
            entry.turn_id = f"t{entry.turn}"
        self.entries.append(entry)

    def insert(self, after: int, entry: Entry) -> None:
        """Put a new entry behind a position; it joins that turn."""
        if not self.entries:
            self.append(entry)
            return
        neighbour = self.entries[max(after, 1) - 1]
        entry.opens = entry.opens and not entry.heartbeat
        entry.turn, entry.turn_id = neighbour.turn, neighbour.turn_id
        self.entries.insert(after, entry)

    def forked(self, count: int) -> "Session":
        """A session of its own with copies of the first entries."""
        entries = [copy(entry) for entry in self.entries[:count]]
        return Session(entries, {entry.message_id for entry in entries})
