"""Maps messages to the summaries that cover them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from sidecar.store.stored import SummaryNode

FINEST_LOOKED_AT = 8
"""Number of neighbouring finest summaries searched for one that covers a message."""


class Coverage:
    """The summaries of one session, as a hierarchy."""

    def __init__(self, nodes: Sequence[SummaryNode]) -> None:
        self._by_id = {node.node_id: node for node in nodes}
        self._parents = {source: node for node in nodes for source in node.sources}
        self._finest = sorted(
            (node for node in nodes if not node.depth),
            key=lambda node: (node.first_position, -node.last_position),
        )
        self._starts = [node.first_position for node in self._finest]

    def get(self, node_id: str) -> SummaryNode | None:
        """The summary with this id."""
        return self._by_id.get(node_id)

    def sources(self, node: SummaryNode) -> list[SummaryNode]:
        """The stored summaries from which a summary was made, in order."""
        found = [known for source in node.sources if (known := self._by_id.get(source))]
        return sorted(found, key=lambda known: known.first_position)

    def above(self, node: SummaryNode) -> list[SummaryNode]:
        """The summaries that cover this one, nearest first."""
        found: list[SummaryNode] = []
        parent = self._parents.get(node.node_id)
        while parent is not None and parent not in found:
            found.append(parent)
            parent = self._parents.get(parent.node_id)
        return found

    def tops(self) -> list[SummaryNode]:
        """The widest summaries, in order; together they cover everything summarised."""
        found: list[SummaryNode] = []
        reached = 0
        for node in sorted(
            self._by_id.values(), key=lambda node: (node.first_position, -node.last_position, -node.depth)
        ):
            if node.last_position > reached:
                found.append(node)
                reached = node.last_position
        return found

    def finest(self, position: int) -> SummaryNode | None:
        """The narrowest summary that covers a message; `None` if there is none."""
        index = bisect_right(self._starts, position)
        near = self._finest[max(index - FINEST_LOOKED_AT, 0) : index]
        return _narrowest(near, position) or _narrowest(list(self._by_id.values()), position)


def _narrowest(nodes: Sequence[SummaryNode], position: int) -> SummaryNode | None:
    holding = [node for node in nodes if node.first_position <= position <= node.last_position]
    return min(holding, key=lambda node: node.last_position - node.first_position, default=None)
