"""What stands in front of the messages that are sent in full: frozen until the next planned change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, json

from sidecar.engine.calls import Made
from sidecar.engines.recollecting import framed
from sidecar.messages.contract import Mark
from sidecar.store.stored import SummaryNode

VIEW_STATE = "view"


class Segment(Struct, frozen=True, array_like=True):
    """A summary as it is sent."""

    node_id: str
    first: int
    last: int
    depth: int
    text: str
    written_ms: int

    @property
    def shown(self) -> str:
        """The text with its heading."""
        return f"[summary {self.node_id} of messages {self.first}-{self.last}]\n{self.text}"

    def as_message(self) -> Made:
        """The summary as an item of an answer."""
        return Made(
            role="user",
            kind="summary",
            ref=self.node_id,
            text=self.shown,
            timestamp_ms=self.written_ms,
            covers=(self.first, self.last),
        )


class View(Struct, frozen=True, kw_only=True):
    """The summaries that are sent, and where the messages begin that are sent in full."""

    segments: tuple[Segment, ...]
    cut: str
    """Id of the first message in full."""
    covered: int
    """The position in front of it."""
    version: str
    """The history that it was made for."""
    quality: str = ""
    """`sketch` where a part was only looked at here and there, to be mended soon."""

    def cost(self, count: Callable[[str], int]) -> int:
        """Tokens of all summaries as they are sent."""
        return sum(cost_of(segment, count) for segment in self.segments)


def segment_of(node: SummaryNode, written_ms: int = 0) -> Segment:
    """A node as it is sent."""
    return Segment(node.node_id, node.first_position, node.last_position, node.depth, node.text, written_ms)


def cost_of(segment: Segment, count: Callable[[str], int]) -> int:
    """Tokens that a summary takes as a message."""
    return framed(segment.shown, count, Mark("summary", segment.node_id))


def total(segments: Sequence[Segment], count: Callable[[str], int]) -> int:
    """Tokens of several."""
    return sum(cost_of(segment, count) for segment in segments)


def encode_view(view: View) -> bytes:
    """The view as it is kept."""
    return json.encode(view)


def decode_view(value: bytes) -> View:
    """A view that was kept."""
    return json.decode(value, type=View)
