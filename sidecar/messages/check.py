"""Judges a list of messages as its provider would, strictly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.messages.contract import Problem, Reading


def check_openai(readings: Sequence[Reading]) -> list[Problem]:
    """What chat completions refuse: results must directly follow the message that calls, all of them."""
    return _strict_chat(readings, lambda call_id: call_id)


def check_openclaw(readings: Sequence[Reading]) -> list[Problem]:
    """The same for pi's messages, whose ids the host respells before it sends them."""
    return _strict_chat(readings, lambda call_id: "".join(c for c in call_id if c.isalnum()) or call_id)


def check_anthropic(readings: Sequence[Reading]) -> list[Problem]:
    """What the Messages API refuses, once neighbours of one side are merged into turns."""
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


def check_responses(readings: Sequence[Reading]) -> list[Problem]:
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
    """Neighbouring messages of one side, as the Messages API sees them."""

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
