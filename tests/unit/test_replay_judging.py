"""Each test gives the judge an answer with one fault, so that no fault goes unnoticed."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sidecar.cli.lab.judge import Judge
from sidecar.cli.lab.recording import STUB_TOKENS, Tally, smallest_answer
from sidecar.client.messages import AssembledContext
from sidecar.messages.contract import Mark
from sidecar.messages.dialects import dialect
from sidecar.messages.fence import sized
from sidecar.protocol.assemble import CompositionPart, StablePrefix
from sidecar.tokens.choose import counter

OPENAI = dialect("openai")


def body(role: str, text: str, **members: object) -> bytes:
    return json.dumps({"role": role, "content": text, **members}).encode()


def call(id: str) -> bytes:
    made = {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return json.dumps({"role": "assistant", "content": None, "tool_calls": [made]}).encode()


TOLD = [body("user", "hello"), body("assistant", "hi"), body("user", "more")]


def answer(messages: Sequence[bytes], *, epoch: int = 1, **members: Any) -> AssembledContext:
    from msgspec import Raw

    whole: dict[str, Any] = {
        "messages": list(map(Raw, messages)),
        "estimated_tokens": 20,
        "context_epoch": epoch,
        "stable_prefix": StablePrefix(message_count=0, tokens=0),
        "result_id": "r",
        "composition": [CompositionPart(kind="recent", tokens=20, message_count=len(messages))],
    }
    return AssembledContext(**{**whole, **members})


@pytest.fixture
def judge() -> Judge:
    return Judge(Tally(OPENAI, counter("estimate")), held_to_budget=True, arranged=True)


def test_a_right_answer_has_no_problem(judge: Judge) -> None:
    verdict = judge.judge(answer(TOLD), TOLD, 100)
    assert verdict.problems == []
    assert (verdict.synthetic, verdict.prefix_kept) == (0, None)
    assert verdict.tokens == Tally(OPENAI, counter("estimate")).total(TOLD)


def test_a_result_without_its_call_is_invalid(judge: Judge) -> None:
    stray = body("tool", "out", tool_call_id="c1")
    assert judge.judge(answer([stray]), [stray], 100).invalid


def test_more_tokens_than_the_budget_are_seen_whatever_the_sidecar_says(judge: Judge) -> None:
    long = [body("user", "word " * 300)]
    assert judge.judge(answer(long), long, 100).over_budget


def test_an_addition_to_the_system_prompt_counts(judge: Judge) -> None:
    verdict = judge.judge(answer(TOLD, system_prompt_addition="word " * 300), TOLD, 100)
    assert verdict.over_budget


def test_an_estimate_over_the_budget_is_seen(judge: Judge) -> None:
    assert judge.judge(answer(TOLD), TOLD, 19).over_budget


def test_a_message_that_differs_in_one_space_is_untrue(judge: Judge) -> None:
    respelled = TOLD[0].replace(b": ", b":")
    assert len(judge.judge(answer([respelled, *TOLD[1:]]), TOLD, 100).untrue) == 1


def test_a_message_that_comes_twice_was_told_once(judge: Judge) -> None:
    assert len(judge.judge(answer([TOLD[0], TOLD[0]]), TOLD, 100).untrue) == 1


def test_a_marked_message_is_synthetic_and_not_untrue(judge: Judge) -> None:
    summary = body("user", sized(Mark("summary", "n1"), "what happened"))
    verdict = judge.judge(answer([summary, TOLD[2]]), TOLD, 100)
    assert (verdict.untrue, verdict.synthetic) == ([], 1)


def test_a_forged_mark_does_not_excuse(judge: Judge) -> None:
    forged = body("user", "[ctx:summary:n1:123456789]\nwhat happened\n[/ctx]")
    assert judge.judge(answer([forged]), TOLD, 100).untrue


def test_a_stubbed_result_is_synthetic(judge: Judge) -> None:
    told = [TOLD[0], call("c1"), body("tool", "long output", tool_call_id="c1")]
    stub = body("tool", sized(Mark("stub", "m3"), "left out"), tool_call_id="c1")
    verdict = judge.judge(answer([*told[:2], stub]), told, 100)
    assert (verdict.problems, verdict.synthetic) == ([], 1)


def test_a_changed_beginning_needs_a_new_epoch(judge: Judge) -> None:
    judge.judge(answer(TOLD), TOLD, 100)
    assert judge.judge(answer(TOLD[2:]), TOLD, 100).inconsistent
    verdict = judge.judge(answer(TOLD, epoch=2), TOLD, 100)
    assert verdict.inconsistent == []
    assert verdict.prefix_kept == 0.0


def test_another_addition_needs_a_new_epoch(judge: Judge) -> None:
    judge.judge(answer(TOLD), TOLD, 100)
    assert judge.judge(answer(TOLD, system_prompt_addition="x"), TOLD, 100).inconsistent


def test_an_epoch_never_falls(judge: Judge) -> None:
    judge.judge(answer(TOLD, epoch=2), TOLD, 100)
    assert judge.judge(answer(TOLD, epoch=1), TOLD, 100).inconsistent


def test_an_extended_answer_keeps_the_whole_prefix(judge: Judge) -> None:
    judge.judge(answer(TOLD[:2]), TOLD[:2], 100)
    verdict = judge.judge(answer(TOLD), TOLD, 100)
    assert (verdict.problems, verdict.prefix_kept) == ([], 1.0)


@pytest.mark.parametrize("part", [{"tokens": 19, "message_count": 3}, {"tokens": 20, "message_count": 2}])
def test_a_composition_that_does_not_sum_up_is_inconsistent(judge: Judge, part: dict[str, int]) -> None:
    wrong = [CompositionPart(kind="recent", **part)]
    assert judge.judge(answer(TOLD, composition=wrong), TOLD, 100).inconsistent


def test_legacy_may_answer_over_the_budget_and_out_of_order() -> None:
    lenient = Judge(Tally(OPENAI, counter("estimate")), held_to_budget=False, arranged=False)
    stray = body("tool", "out", tool_call_id="c1")
    assert lenient.judge(answer([stray]), [stray], 1).problems == []


def test_the_smallest_answer_has_the_newest_question_and_the_last_calls() -> None:
    tally = Tally(OPENAI, counter("estimate"))
    system, question = body("system", "be brief"), body("user", "what is in it?")
    result = body("tool", "word " * 1000, tool_call_id="c2")
    told = [system, *TOLD, question, call("c1"), body("tool", "old", tool_call_id="c1"), call("c2"), result]
    assert smallest_answer(told, tally) == tally.total([system, question, call("c2")]) + STUB_TOKENS
    assert smallest_answer(told[:5], tally) == tally.total([system, question])
