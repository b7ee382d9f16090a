"""The outline of a session's summaries: what each covers, without the texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sidecar.engine.signature import digest
from sidecar.store.stored import SummaryNode

NODE, VIEW = "n", "v"
"""First letters of ids: forest nodes, and summaries made for a single view."""


class Outline(NamedTuple):
    """One summary without its text."""

    node_id: str
    first: int
    last: int
    depth: int
    tokens: int
    quality: str
    sources: tuple[str, ...]


class Gap(NamedTuple):
    """A run of positions without a summary, both ends included."""

    first: int
    last: int


def outline_of(node: SummaryNode) -> Outline:
    """The outline of a stored node."""
    return Outline(
        node.node_id,
        node.first_position,
        node.last_position,
        node.depth,
        node.tokens,
        node.quality,
        node.sources,
    )


def node_id(depth: int, sources: Iterable[str], letter: str = NODE, about: str = "") -> str:
    """The id of a summary, derived from its sources, so that rewriting it gives the same id."""
    named = "\n".join(sources)
    return f"{letter}{digest(f'{depth} {about} {named}')}"


class Forest:
    """Trees of summaries over a session; their roots together cover all summarised messages."""

    def __init__(self, nodes: Iterable[Outline] = ()) -> None:
        self._nodes: dict[str, Outline] = {}
        self._parents: dict[str, str] = {}
        self._roots: list[Outline] | None = None
        for node in nodes:
            self.add(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: Outline) -> None:
        """Add a node or replace it by a new version; summaries made for one view are ignored."""
        if not node.node_id.startswith(NODE):
            return
        self._nodes[node.node_id] = node
        for source in node.sources:
            self._parents[source] = node.node_id
        self._roots = None

    def get(self, node_id: str) -> Outline | None:
        """The node with that id, or `None`."""
        return self._nodes.get(node_id)

    def parent(self, node: Outline) -> Outline | None:
        """The summary that the node was condensed into."""
        return self._nodes.get(self._parents.get(node.node_id, ""))

    def children(self, node: Outline) -> list[Outline]:
        """The nodes that it was condensed from, in order; empty if any is gone."""
        found = [self._nodes.get(source) for source in node.sources]
        there = [child for child in found if child is not None]
        return sorted(there, key=lambda child: child.first) if len(there) == len(found) else []

    @property
    def roots(self) -> list[Outline]:
        """The nodes without a parent, in order; one fully covered by others is skipped."""
        if self._roots is None:
            tops = [
                node for node in self._nodes.values() if self._parents.get(node.node_id) not in self._nodes
            ]
            tops.sort(key=lambda node: (node.first, -node.last))
            self._roots = []
            reached = 0
            for node in tops:
                if node.last > reached:
                    self._roots.append(node)
                    reached = node.last
        return self._roots

    @property
    def covered(self) -> int:
        """The last position covered; 0 if none is."""
        return self.roots[-1].last if self.roots else 0

    def gaps(self) -> list[Gap]:
        """Runs of uncovered positions before and between the roots."""
        found: list[Gap] = []
        reached = 0
        for node in self.roots:
            if node.first > reached + 1:
                found.append(Gap(reached + 1, node.first - 1))
            reached = max(reached, node.last)
        return found

    def down_to(self, last: int) -> list[Outline]:
        """The fewest nodes that cover the summarised positions up to `last` and little more, in order."""
        found: list[Outline] = []
        for node in self.roots:
            found += self._within(node, last)
        return found

    def ripe(self, fan_in: int, spared: int) -> list[Outline] | None:
        """The oldest `fan_in` neighbours of one depth to condense, sparing the newest `spared`.

        `None` if no depth has enough of them.
        """
        for depth in sorted({node.depth for node in self.roots}):
            row = self._row(depth)
            if len(row) >= fan_in + spared:
                return row[:fan_in]
        return None

    def _row(self, depth: int) -> list[Outline]:
        """The longest run of neighbouring roots of a depth; of equal ones, the oldest."""
        longest: list[Outline] = []
        run: list[Outline] = []
        for node in self.roots:
            if node.depth == depth and (not run or run[-1].last + 1 >= node.first):
                run.append(node)
            else:
                longest = max(longest, run, key=len)
                run = [node] if node.depth == depth else []
        return max(longest, run, key=len)

    def _within(self, node: Outline, last: int) -> Sequence[Outline]:
        if node.first > last:
            return ()
        children = self.children(node) if node.last > last else ()
        return [leaf for child in children for leaf in self._within(child, last)] if children else [node]
