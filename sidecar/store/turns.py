"""To which turn a message belongs."""

from sidecar.store.records import OPENS, SessionRecord


def turn_name(turn: int, label: str | None) -> str:
    """The `turn_id` of a turn: the host's name where it gave one."""
    return label if label is not None else f"t{turn}"


def advance(record: SessionRecord, opens_turn: bool, heartbeat: bool, label: str | None) -> int:
    """Bring the newest turn to that of a message at the end; the flag to keep with the message.

    Turn 1 is there with the first message. The first message that opens a turn is still in it, each later
    one raises the number. A label that differs from the newest turn's name opens a turn by itself.
    Heartbeats join whatever is there.
    """
    empty = record.turn_count == 0
    if empty:
        record.turn_count = 1
    if heartbeat:
        return 0
    if label is not None:
        return _advance_labelled(record, opens_turn, label, empty)
    if not opens_turn:
        return 0
    if record.turn_opened:
        record.turn_count += 1
        record.turn_label = None
    record.turn_opened = True
    return OPENS


def _advance_labelled(record: SessionRecord, opens_turn: bool, label: str, empty: bool) -> int:
    if not empty:
        if label == turn_name(record.turn_count, record.turn_label):
            record.turn_opened = record.turn_opened or opens_turn
            return OPENS if opens_turn else 0
        record.turn_count += 1
    record.turn_label = None if label == f"t{record.turn_count}" else label
    record.turn_opened = True
    return OPENS
