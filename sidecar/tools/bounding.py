"""Keeps the text of a tool result within its limit, and says what was left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.tools.rendering import Shown, in_ranges

LIMIT = 16_000
"""Maximum length of a tool result in characters, including the closing line (CEP-TOOL-4)."""
CLOSING = 400
"""Characters reserved for the closing line."""
HEADING = 60
"""Maximum length of a heading in characters, including its line break."""
SHORTEST = 400
"""Length to which messages are shortened, in characters, before others are left out whole."""

Shorten = Callable[[str, int], str]
"""Brings a text down to a number of characters."""


def bounded(
    shown: Sequence[Shown], count: int, shorten: Shorten, *, first_wanted: Sequence[int], hint: str, more: str
) -> str:
    """The messages as text within the bound, and a closing line where not all of it could be shown.

    `first_wanted` names positions in the order in which they are to be shown if not all can be; `more` says
    what else there would have been, `hint` how to get at what is left out.
    """
    text = in_ranges(shown, count)
    if len(text) <= LIMIT and not more:
        return text
    room = LIMIT - CLOSING
    kept = _chosen(shown, first_wanted, room)
    most = _cap([len(message.text) for message in kept], room - HEADING * len(kept))
    shortened = [message.shortened(most, shorten) for message in kept]
    notes = [more] if more else []
    if len(kept) < len(shown):
        left_out = len(shown) - len(kept)
        notes.append(f"{left_out} of {len(shown)} messages that belong here are left out")
    changed = sum(a is not b for a, b in zip(kept, shortened, strict=True))
    if changed:
        notes.append(f"{changed} long {'messages are' if changed > 1 else 'message is'} shortened")
    return f"{in_ranges(shortened, count)}\n--- {'; '.join(notes)}. {hint} ---"


def closed(lines: Sequence[str], hint: str, *, in_part: int) -> str:
    """As many of the lines as the bound allows, and a closing line where not everything is shown.

    `in_part` says how many of the lines show only a part of their message.
    """
    size, kept = 0, 0
    for line in lines:
        size += len(line) + 1
        if size > LIMIT - CLOSING:
            break
        kept += 1
    notes = [f"{len(lines) - kept} more are left out"] if kept < len(lines) else []
    if in_part:
        notes.append(f"of {in_part} long {'messages' if in_part > 1 else 'message'} the rest is left out")
    shown = "\n".join(lines[:kept])
    return f"{shown}\n--- {'; '.join(notes)}. {hint} ---" if notes else shown


def _chosen(shown: Sequence[Shown], first_wanted: Sequence[int], room: int) -> list[Shown]:
    """As many messages as there is room for, were each shortened as far as it may be."""
    by_position = {message.position: message for message in shown}
    kept: list[Shown] = []
    for position in first_wanted:
        message = by_position.get(position)
        if message is None:
            continue
        room -= min(len(message.text), SHORTEST) + HEADING
        if room < 0 and kept:
            break
        kept.append(message)
    return sorted(kept, key=lambda message: message.position)


def _cap(sizes: Sequence[int], room: int) -> int:
    """The length to which the long ones must be shortened so that all fit."""
    left = sorted(sizes)
    while left and left[0] * len(left) <= room:
        room -= left.pop(0)
    return max(room // len(left), 1) if left else max(sizes, default=0)
