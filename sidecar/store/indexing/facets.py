"""Terms for what is known of a message beside its text, by which searches are narrowed."""

from collections.abc import Iterable
from typing import NamedTuple

from sidecar.store.records import MessageRow, role_code
from sidecar.store.search import Searchable, SearchQuery
from sidecar.store.turns import turn_name

LONG_RUN = "\x01long"
"""Carried by messages with a run of letters too long to be a term."""


def facets(row: MessageRow, searchable: Searchable) -> list[str]:
    """The terms of a message that stand for its role, turn and tools."""
    known = [_facet("role", row.role), _facet("turn", turn_name(row.turn, row.turn_label))]
    known += dict.fromkeys(_facet("tool", tool) for tool in searchable.tools)
    return known


class Narrowing(NamedTuple):
    """What messages must have beside the text: one facet of every group, and a time in between."""

    groups: tuple[tuple[str, ...], ...]
    since_ms: int | None
    until_ms: int | None

    @property
    def by_time(self) -> bool:
        """Whether times matter."""
        return self.since_ms is not None or self.until_ms is not None

    def admits(self, timestamp_ms: int) -> bool:
        """Whether a message of this time may be found."""
        since, until = self.since_ms, self.until_ms
        return (since is None or timestamp_ms >= since) and (until is None or timestamp_ms <= until)

    def agrees(self, carried: Iterable[str]) -> bool:
        """Whether a message with these facets may be found."""
        has = set(carried)
        return all(not has.isdisjoint(group) for group in self.groups)


def narrowing(query: SearchQuery) -> Narrowing:
    """What the query asks of messages beside their text."""
    groups: list[tuple[str, ...]] = []
    if query.roles:
        groups.append(tuple(_facet("role", role_code(role)) for role in query.roles))
    if query.tool is not None:
        groups.append((_facet("tool", query.tool),))
    if query.turn_id is not None:
        groups.append((_facet("turn", query.turn_id),))
    return Narrowing(tuple(groups), query.since_ms, query.until_ms)


def _facet(kind: str, value: str) -> str:
    """No line breaks, which stand between terms, and no halves of surrogate pairs, which no file takes."""
    facet = f"\x01{kind} {value}".replace("\n", "\x02")
    return facet if facet.isascii() else facet.encode("utf-8", "replace").decode()
