"""The outline of a session's summaries: what stands for what, without the texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sidecar.engine.signature import digest
from sidecar.store.stored import SummaryNode

NODE, VIEW = "n", "v"
"""First letters of ids: of the forest's nodes, and of summaries made for one view."""


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
    """Positions that nothing stands for, both included."""

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
    """The id of a summary: made of what it stands for, so that a redo meets its earlier self."""
    named = "\n".join(sources)
    return f"{letter}{digest(f'{depth} {about} {named}')}"


class Forest:
    """Trees of summaries over a session; their roots together stand for all that is summarised."""

    def __init__(self, nodes: Iterable[Outline] = ()) -> None:
        self._nodes: dict[str, Outline] = {}
        self._parents: dict[str, str] = {}
        self._roots: list[Outline] | None = None
        for node in nodes:
            self.add(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: Outline) -> None:
        """Take in a node, or another version of it."""
        if not node.node_id.startswith(NODE):
            return
        self._nodes[node.node_id] = node
        for source in node.sources:
            self._parents[source] = node.node_id
        self._roots = None

    def get(self, node_id: str) -> Outline | None:
        """The node of that id."""
        return self._nodes.get(node_id)

    def parent(self, node: Outline) -> Outline | None:
        """The summary that the node was condensed into."""
        return self._nodes.get(self._parents.get(node.node_id, ""))

    def children(self, node: Outline) -> list[Outline]:
        """What the node was condensed from, in order; empty where any of it is not there any more."""
        found = [self._nodes.get(source) for source in node.sources]
        there = [child for child in found if child is not None]
        return sorted(there, key=lambda child: child.first) if len(there) == len(found) else []

    @property
    def roots(self) -> list[Outline]:
        """The nodes that nothing stands for, in order; one that others stand for whole is passed over."""
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
        """The last position that anything stands for."""
        return self.roots[-1].last if self.roots else 0

    def gaps(self) -> list[Gap]:
        """Runs of positions between the roots that nothing stands for."""
        found: list[Gap] = []
        reached = 0
        for node in self.roots:
            if node.first > reached + 1:
                found.append(Gap(reached + 1, node.first - 1))
            reached = max(reached, node.last)
        return found

    def down_to(self, last: int) -> list[Outline]:
        """The fewest nodes that stand for everything up to `last`, hardly more; in order."""
        found: list[Outline] = []
        for node in self.roots:
            found += self._within(node, last)
        return found

    def ripe(self, fan_in: int, spared: int) -> list[Outline] | None:
        """The oldest `fan_in` neighbours of one depth to be condensed; the newest `spared` are left fine."""
        for depth in sorted({node.depth for node in self.roots}):
            row = self._row(depth)
            if len(row) >= fan_in + spared:
                return row[:fan_in]
        return None

    def _row(self, depth: int) -> list[Outline]:
        """The oldest run of neighbouring roots of a depth."""
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
