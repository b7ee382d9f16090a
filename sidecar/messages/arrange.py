"""Orders a chosen list of messages so that their provider accepts it.

Messages are put into groups: one that calls tools with everything that answers it, or a single other message.
What a provider would refuse is left out, which may take the reason for another message away, so the groups
are built again until nothing more has to go.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from sidecar.messages.contract import Leave, Missing, Placement, Reading, Send
from sidecar.messages.folding import same_id
from sidecar.messages.pairing import Pairing, pair


class ProviderRules(Struct, frozen=True, kw_only=True):
    """In which points providers differ."""

    merges_neighbours: bool
    """Neighbouring messages of the model count as one: their calls are answered behind the last of them."""
    compares_ids_exactly: bool
    """A result must spell its call's id alike; otherwise the host is known to respell both."""
    starts_with_user: bool
    """The first message that is no system message must be a user's."""
    keeps_lone_reasoning: bool
    """A message of nothing but reasoning belongs to the one behind it; otherwise it counts as empty."""
    unanswerable: frozenset[str] = frozenset()
    """Types of calls whose result is no text, so that nothing can stand in for one that is missing."""


OPENAI = ProviderRules(
    merges_neighbours=False, compares_ids_exactly=True, starts_with_user=False, keeps_lone_reasoning=False
)
RESPONSES = ProviderRules(
    merges_neighbours=True,
    compares_ids_exactly=True,
    starts_with_user=False,
    keeps_lone_reasoning=True,
    unanswerable=frozenset(("tool_search_call", "computer_call")),
)
ANTHROPIC = ProviderRules(
    merges_neighbours=True, compares_ids_exactly=True, starts_with_user=True, keeps_lone_reasoning=True
)
OPENCLAW = ProviderRules(
    merges_neighbours=False, compares_ids_exactly=False, starts_with_user=False, keeps_lone_reasoning=False
)

_SPEAKING = frozenset(("system", "developer", "user", "assistant"))


class _Group(Struct):
    heads: list[int]
    call_ids: set[str] = field(default_factory=set[str])
    answers: list[int] = field(default_factory=list[int])
    """Messages that hold results and nothing else, in order."""
    mixed: list[int] = field(default_factory=list[int])
    """Messages in which something is said behind the results."""


def arrange(readings: Sequence[Reading], rules: ProviderRules, *, cut: bool) -> list[Placement]:
    """The placements of `readings`, as `Dialect.arrange` describes them."""
    left = _unfit(readings, rules)
    while True:
        pairing = pair(readings, left)
        groups, more = _groups(readings, rules, pairing, left)
        more |= _headless(readings, groups, rules.starts_with_user or cut)
        if rules.unanswerable:
            more |= _unanswerable(readings, groups, pairing, rules.unanswerable)
        if rules.keeps_lone_reasoning:
            more |= _lone_reasoning(readings, groups)
        if not more:
            break
        left |= more
    placements: list[Placement] = [Leave(index, rule) for index, rule in sorted(left.items())]
    for position, group in enumerate(groups):
        placements += _placed(readings, group, pairing, position == len(groups) - 1)
    return placements


def _unfit(readings: Sequence[Reading], rules: ProviderRules) -> dict[int, str]:
    """What no company makes acceptable: empty messages, and messages that use one call id twice."""
    left: dict[int, str] = {}
    for index, reading in enumerate(readings):
        if is_empty(reading, rules.keeps_lone_reasoning):
            left[index] = "empty"
        elif _repeats(_spelled([call.id for call in reading.calls], rules)):
            left[index] = "repeated-call-id"
        elif _repeats(_spelled([result.call_id for result in reading.results], rules)):
            left[index] = "repeated-result"
    return left


def is_empty(reading: Reading, keeps_lone_reasoning: bool) -> bool:
    """Whether a message of a role that speaks says nothing."""
    if reading.wire_role not in _SPEAKING or reading.calls or reading.results or reading.media:
        return False
    if keeps_lone_reasoning and reading.carries_reasoning:
        return False
    return not reading.text or reading.text.isspace()


def _groups(
    readings: Sequence[Reading], rules: ProviderRules, pairing: Pairing, left: dict[int, str]
) -> tuple[list[_Group], dict[int, str]]:
    groups: list[_Group] = []
    home: dict[int, _Group] = {}
    more: dict[int, str] = {}
    run: _Group | None = None
    for index, reading in enumerate(readings):
        if index in left:
            continue
        if reading.results:
            group = _answered(readings, rules, pairing, home, index, more)
            if group is not None and group is run:
                run = None
            continue
        ids = set(_spelled([call.id for call in reading.calls], rules))
        if run is not None and reading.role == "assistant" and not ids & run.call_ids:
            run.heads.append(index)
            run.call_ids |= ids
        else:
            group = _Group([index], ids)
            groups.append(group)
            run = group if rules.merges_neighbours and reading.role == "assistant" else None
        home[index] = run or groups[-1]
    return groups, more


def _answered(
    readings: Sequence[Reading],
    rules: ProviderRules,
    pairing: Pairing,
    home: dict[int, _Group],
    index: int,
    more: dict[int, str],
) -> _Group | None:
    """Puts a message with results into the group that it answers, or names the rule against it."""
    group: _Group | None = None
    for result, place in zip(readings[index].results, pairing.answers[index], strict=True):
        if place is None:
            more[index] = "result-without-call"
            return None
        call = readings[place.message].calls[place.number]
        if rules.compares_ids_exactly and call.id != result.call_id:
            more[index] = "call-id-differs"
            return None
        if group is not None and home[place.message] is not group:
            more[index] = "results-of-several-turns"
            return None
        group = home[place.message]
    if group is None:
        return None
    if readings[index].role == "tool":
        group.answers.append(index)
    elif group.mixed:
        more[index] = "text-before-result"
    else:
        group.mixed.append(index)
    return group


def _headless(readings: Sequence[Reading], groups: list[_Group], needs_user: bool) -> dict[int, str]:
    """Messages of the model in front of the first one that may open a list."""
    if not needs_user:
        return {}
    more: dict[int, str] = {}
    for group in groups:
        role = readings[group.heads[0]].role
        if role == "assistant":
            more |= dict.fromkeys(group.heads, "starts-without-user")
        elif role != "system":
            break
    return more


def _unanswerable(
    readings: Sequence[Reading], groups: list[_Group], pairing: Pairing, types: frozenset[str]
) -> dict[int, str]:
    """Interrupted calls for which no result can be made up; those at the very end stay open."""
    return {
        index: "call-without-result"
        for group in groups[:-1]
        for index in group.heads
        for number in pairing.unanswered.get(index, ())
        if readings[index].calls[number].wire_type in types
    }


def _lone_reasoning(readings: Sequence[Reading], groups: list[_Group]) -> dict[int, str]:
    """Reasoning with no message of the model behind it."""
    more: dict[int, str] = {}
    for group in groups:
        for index in reversed(group.heads):
            if not _only_reasons(readings[index]):
                break
            more[index] = "reasoning-without-item"
    return more


def _only_reasons(reading: Reading) -> bool:
    return reading.carries_reasoning and not (reading.calls or reading.media or reading.text.strip())


def _placed(readings: Sequence[Reading], group: _Group, pairing: Pairing, is_last: bool) -> list[Placement]:
    placed: list[Placement] = [Send(index) for index in (*group.heads, *group.answers)]
    if not is_last or group.mixed:
        placed += [
            Missing(readings[index].calls[number], index)
            for index in group.heads
            for number in pairing.unanswered.get(index, ())
        ]
    placed += [Send(index) for index in group.mixed]
    return placed


def _spelled(ids: list[str], rules: ProviderRules) -> list[str]:
    return ids if rules.compares_ids_exactly else [same_id(call_id) for call_id in ids]


def _repeats(ids: list[str]) -> bool:
    return len(ids) > 1 and len(set(ids)) < len(ids)
