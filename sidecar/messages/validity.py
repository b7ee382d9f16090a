"""What a provider's API accepts: finds problems in a list of messages, and arranges it without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from sidecar.messages.contract import Leave, Missing, Placement, Problem, Reading, Send
from sidecar.messages.pairing import Pairing, only_reasons, pair, superseded
from sidecar.messages.text import same_id


class ProviderRules(Struct, frozen=True, kw_only=True):
    """The points in which providers differ."""

    merges_neighbours: bool
    """Consecutive assistant messages count as one: results follow the last of them."""
    compares_ids_exactly: bool
    """A result's id must be identical to its call's; false if the host is known to rewrite both."""
    starts_with_user: bool
    """The first message other than system messages must be a user's."""
    keeps_lone_reasoning: bool
    """A message with only reasoning belongs to the one after it; if false, it counts as empty."""
    unanswerable: frozenset[str] = frozenset()
    """Types of calls whose result is not text, so that a missing one cannot be substituted."""


RULES = {
    "openai": ProviderRules(
        merges_neighbours=False, compares_ids_exactly=True, starts_with_user=False, keeps_lone_reasoning=False
    ),
    "openai-responses": ProviderRules(
        merges_neighbours=True,
        compares_ids_exactly=True,
        starts_with_user=False,
        keeps_lone_reasoning=True,
        unanswerable=frozenset(("tool_search_call", "computer_call")),
    ),
    "anthropic": ProviderRules(
        merges_neighbours=True, compares_ids_exactly=True, starts_with_user=True, keeps_lone_reasoning=True
    ),
    "openclaw": ProviderRules(
        merges_neighbours=False,
        compares_ids_exactly=False,
        starts_with_user=False,
        keeps_lone_reasoning=False,
    ),
}
"""The rules of each dialect."""

_SPEAKING = frozenset(("system", "developer", "user", "assistant"))


class _Group(Struct):
    heads: list[int]
    call_ids: set[str] = field(default_factory=set[str])
    answers: list[int] = field(default_factory=list[int])
    """Messages with only results, in order."""
    mixed: list[int] = field(default_factory=list[int])
    """Messages with other content after their results."""


def arrange(readings: Sequence[Reading], rules: ProviderRules, *, cut: bool) -> list[Placement]:
    """The placements of `readings`, as `Dialect.arrange` describes them."""
    left = _unfit(readings, rules)
    while True:
        pairing = pair(readings, left)
        groups, more = _groups(readings, rules, pairing, left)
        more |= _headless(readings, groups, rules.starts_with_user or cut)
        more |= _unanswerable(readings, groups, pairing, rules.unanswerable)
        if rules.keeps_lone_reasoning:
            more |= _lone_reasoning(readings, groups)
        if not more:
            break
        left |= more
    placements: list[Placement] = [Leave(index, rule) for index, rule in sorted(left.items())]
    for group in groups:
        placements += _placed(readings, group, pairing, closed=_is_closed(group, groups))
    return placements


def _unfit(readings: Sequence[Reading], rules: ProviderRules) -> dict[int, str]:
    """Messages that are invalid in any context: empty ones, and ones that use a call id twice.

    Of two messages with the same result, the one with more results stays.
    """
    left: dict[int, str] = {}
    for index, reading in enumerate(readings):
        if is_empty(reading, rules.keeps_lone_reasoning):
            left[index] = "empty"
        elif _repeats(_spelled([call.id for call in reading.calls], rules)):
            left[index] = "repeated-call-id"
        elif _repeats(_spelled([result.call_id for result in reading.results], rules)):
            left[index] = "repeated-result"
    return left | dict.fromkeys(superseded(readings, left), "repeated-result")


def is_empty(reading: Reading, keeps_lone_reasoning: bool) -> bool:
    """Whether a system, developer, user or assistant message has no content."""
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
    """Add a message with results to the group that it answers, or record the rule it breaks."""
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
    """Assistant messages before the first message that may open the list."""
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
    """Interrupted calls for which no result can be synthesised; those at the very end stay open."""
    more: dict[int, str] = {}
    for group in groups:
        if not _is_closed(group, groups):
            continue
        for index in group.heads:
            for number in pairing.unanswered.get(index, ()):
                call = readings[index].calls[number]
                # Without a readable call id, there is nothing for a result to refer to.
                if not call.id or call.wire_type in types:
                    more[index] = "call-without-result"
    return more


def _is_closed(group: _Group, groups: list[_Group]) -> bool:
    """Whether the group's calls must be answered because other content follows."""
    return group is not groups[-1] or bool(group.mixed)


def _lone_reasoning(readings: Sequence[Reading], groups: list[_Group]) -> dict[int, str]:
    """Reasoning not followed by an assistant message."""
    more: dict[int, str] = {}
    for group in groups:
        for index in reversed(group.heads):
            if not only_reasons(readings[index]):
                break
            more[index] = "reasoning-without-item"
    return more


def _placed(readings: Sequence[Reading], group: _Group, pairing: Pairing, *, closed: bool) -> list[Placement]:
    placed: list[Placement] = [Send(index) for index in (*group.heads, *group.answers)]
    if closed:
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


def _check_openai(readings: Sequence[Reading]) -> list[Problem]:
    """What chat completions refuse: all results must directly follow the calling message."""
    return _strict_chat(readings, lambda call_id: call_id)


def _check_openclaw(readings: Sequence[Reading]) -> list[Problem]:
    """The same for pi's messages, whose ids the host rewrites before sending."""
    return _strict_chat(readings, lambda call_id: "".join(c for c in call_id if c.isalnum()) or call_id)


def _check_anthropic(readings: Sequence[Reading]) -> list[Problem]:
    """What the Messages API refuses, after merging consecutive messages of one side into turns."""
    problems = _blank_messages(readings, reasoning_counts=True)
    turns: list[_Turn] = []
    for index, reading in enumerate(readings):
        if reading.role == "system":
            continue
        side = "assistant" if reading.role == "assistant" else "user"
        if not turns or turns[-1].side != side:
            turns.append(_Turn(side, index))
        problems += turns[-1].add(index, reading)
    if turns and turns[0].side != "user":
        problems.append(Problem(turns[0].index, "starts-without-user", "the first turn is the assistant's"))
    for number, turn in enumerate(turns):
        before = turns[number - 1].used if number else []
        problems += [
            Problem(turn.index, "result-without-call", call_id)
            for call_id in turn.answered
            if call_id not in before
        ]
        if turn.side == "assistant":
            problems += turn.unanswered(turns[number + 1 :])
    return sorted(problems, key=_by_index)


def _check_responses(readings: Sequence[Reading]) -> list[Problem]:
    """What the Responses API refuses: outputs without a call, calls without an output, stray reasoning."""
    problems = _blank_messages(readings, reasoning_counts=True)
    due: dict[str, int] = {}
    answering = False
    for index, reading in enumerate(readings):
        if reading.results:
            answering = True
            for result in reading.results:
                if due.pop(result.call_id, None) is None:
                    problems.append(Problem(index, "result-without-call", result.call_id))
            continue
        if due and (answering or reading.role != "assistant"):
            problems += [Problem(at, "call-without-result", call_id) for call_id, at in due.items()]
            due.clear()
        answering = False
        for call in reading.calls:
            if call.id in due:
                problems.append(Problem(index, "repeated-call-id", call.id))
            due[call.id] = index
    for index, reading in enumerate(readings):
        follower = readings[index + 1] if index + 1 < len(readings) else None
        if _is_reasoning(reading) and (follower is None or follower.role != "assistant"):
            problems.append(Problem(index, "reasoning-without-item", reading.wire_role))
    return sorted(problems, key=_by_index)


class _Turn:
    """Consecutive messages of one side, as the Messages API merges them."""

    def __init__(self, side: str, index: int) -> None:
        self.side = side
        self.index = index
        self.used: list[str] = []
        self.answered: list[str] = []
        self.speaks = False
        self.ends_in_reasoning = False

    def add(self, index: int, reading: Reading) -> list[Problem]:
        problems: list[Problem] = []
        for call in reading.calls:
            if call.id in self.used:
                problems.append(Problem(index, "repeated-call-id", call.id))
            self.used.append(call.id)
        for result in reading.results:
            if self.speaks:
                problems.append(Problem(index, "text-before-result", result.call_id))
            if result.call_id in self.answered:
                problems.append(Problem(index, "repeated-result", result.call_id))
            self.answered.append(result.call_id)
        self.speaks = self.speaks or reading.role != "tool"
        self.ends_in_reasoning = _is_reasoning(reading)
        return problems

    def unanswered(self, later: Sequence[_Turn]) -> list[Problem]:
        problems: list[Problem] = []
        if self.ends_in_reasoning:
            problems.append(Problem(self.index, "reasoning-without-item", "the turn ends in reasoning"))
        reply = later[0] if later else None
        if reply is None or (len(later) == 1 and not reply.speaks):
            return problems
        missing = [call_id for call_id in self.used if call_id not in reply.answered]
        return problems + [Problem(self.index, "call-without-result", call_id) for call_id in missing]


def _strict_chat(readings: Sequence[Reading], spelled: Callable[[str], str]) -> list[Problem]:
    problems = _blank_messages(readings, reasoning_counts=False)
    due: dict[str, int] = {}
    for index, reading in enumerate(readings):
        if reading.results:
            for result in reading.results:
                if due.pop(spelled(result.call_id), None) is None:
                    problems.append(Problem(index, "result-without-call", result.call_id))
            continue
        problems += [Problem(at, "call-without-result", call_id) for call_id, at in due.items()]
        due = {}
        for call in reading.calls:
            if spelled(call.id) in due:
                problems.append(Problem(index, "repeated-call-id", call.id))
            due[spelled(call.id)] = index
    return sorted(problems, key=_by_index)


def _blank_messages(readings: Sequence[Reading], *, reasoning_counts: bool) -> list[Problem]:
    problems: list[Problem] = []
    for index, reading in enumerate(readings):
        if reading.wire_role not in ("system", "developer", "user", "assistant"):
            continue
        carries = bool(reading.calls or reading.results or reading.media)
        carries = carries or (reasoning_counts and reading.carries_reasoning)
        if not carries and not reading.text.strip():
            problems.append(Problem(index, "empty", reading.wire_role))
    return problems


def _is_reasoning(reading: Reading) -> bool:
    says = reading.text.strip() or reading.calls or reading.results or reading.media
    return reading.carries_reasoning and not says


def _by_index(problem: Problem) -> int:
    return problem.index


CHECKS = {
    "openai": _check_openai,
    "openai-responses": _check_responses,
    "anthropic": _check_anthropic,
    "openclaw": _check_openclaw,
}
"""For each dialect, the strict check for what its provider refuses."""
