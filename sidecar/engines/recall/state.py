"""What the `recall` engine keeps of a session, so that what was sent stays where it was."""

from __future__ import annotations

from msgspec import MsgspecError, Struct, json, structs

from sidecar.engine.calls import Made
from sidecar.engine.session import Session
from sidecar.messages.contract import Mark

STATE = "recall"


class Block(Struct, frozen=True, array_like=True):
    """What was recalled at one moment."""

    anchor: str
    """Id of the message behind which it stands."""
    prompt: str
    """Stands for the prompt that called for it."""
    budget: int
    """Tokens that the answer had."""
    text: str
    tokens: int
    """What it takes, before calibration."""
    shown: list[tuple[int, int]]
    """Position and part of each passage."""
    ref: str
    timestamp_ms: int

    def as_message(self) -> Made:
        """The block as an item of an answer."""
        return Made(
            role="user",
            kind="recall",
            ref=self.ref,
            text=self.text,
            timestamp_ms=self.timestamp_ms,
            lasting=True,
        )


class RecallState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The window, the notes in front of it, and what was recalled since it began."""

    cut: str = ""
    """Id of the message at which the window begins; empty where nothing was cut."""
    quiet: str = ""
    """Stands for the prompt of the turn in which the host asked for room: it recalls nothing."""
    bare: bool = False
    """Whether the window is empty, since even the newest messages were too large for it."""
    notes: str = ""
    notes_tokens: int = 0
    """What the notes take, before calibration."""
    notes_ms: int = 0
    """Time stamp of the newest message that they stand for."""
    blocks: list[Block] = []

    def notes_message(self) -> Made:
        """The notes as an item of an answer."""
        return Made(role="user", kind="summary", ref=NOTES.ref, text=self.notes, timestamp_ms=self.notes_ms)

    @property
    def plain_tokens(self) -> int:
        """What notes and blocks take, before calibration."""
        return self.notes_tokens + sum(block.tokens for block in self.blocks)


NOTES = Mark("summary", "notes")


async def load(session: Session) -> RecallState:
    """The state; empty once the history was rewound behind the window's beginning."""
    value = await session.state(STATE)
    try:
        state = json.decode(value, type=RecallState) if value else RecallState()
    except MsgspecError:
        return RecallState()
    if not state.cut:
        return state
    cut = await session.timeline.resolve(state.cut)
    if cut is None:
        return RecallState()
    blocks: list[Block] = []
    for block in state.blocks:
        anchor = await session.timeline.resolve(block.anchor)
        if anchor is None:
            continue
        blocks.append(block if anchor == block.anchor else structs.replace(block, anchor=anchor))
    return structs.replace(state, cut=cut, blocks=blocks)


async def save(session: Session, state: RecallState) -> None:
    """Keep the state."""
    await session.save_state(STATE, json.encode(state))
