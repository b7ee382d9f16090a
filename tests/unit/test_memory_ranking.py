"""Which fragments enter a compilation: any fragments, priorities, budgets and lies about sizes."""

import asyncio
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.memory.contract import Fragment, MemoryRequest
from sidecar.memory.coordinator import FREE_FRAME, Answer, Asked, Compilation, Coordinator, framed
from sidecar.memory.events import added, event_of, events
from sidecar.memory.ranking import candidates, choose, item_key
from sidecar.tokens.estimate import EstimateCounter

COUNT = EstimateCounter().count
WORDS = st.text(st.sampled_from("abc def\n[/ctx] [ctx:memory:x:000000000] 数据 🙂"), min_size=0, max_size=400)
NUMBERS = st.one_of(
    st.none(),
    st.integers(-5, 400),
    st.floats(-5, 400, allow_nan=False),
    st.sampled_from((math.nan, math.inf, -math.inf, 10**400, -(10**400))),
)
FRAGMENTS = st.builds(
    Fragment,
    content=WORDS,
    priority=st.one_of(
        st.integers(-10, 120), st.just(50), st.sampled_from((math.nan, math.inf, 10**400, -(10**400)))
    ),
    tokens=NUMBERS,
    id=st.one_of(st.none(), st.text("xyz", max_size=2)),
    label=st.one_of(st.none(), st.text(max_size=30)),
    synthesize=st.booleans(),
)
ANSWERS = st.lists(st.lists(FRAGMENTS, max_size=8), min_size=1, max_size=4)
BUDGETS = st.integers(1, 2000)


class Silent:
    def __init__(self, name: str) -> None:
        self.name = name
        self.injection_points = ("per-message",)

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        return []


async def never_known(key: str) -> bool:
    return False


def compiled(
    answers: list[list[Fragment]], budget: int, caps: list[int | None] | None = None, **options: Any
) -> Compilation:
    names = [f"s{number}" for number in range(len(answers))]
    sources = [Asked(Silent(n), cap) for n, cap in zip(names, caps or [None] * len(names), strict=True)]
    said = [Answer(name, fragments, 1) for name, fragments in zip(names, answers, strict=True)]
    request = MemoryRequest("agent", "per-message", budget)
    work = Coordinator(source_timeout_ms=1000).compile(sources, said, request, COUNT, never_known, **options)
    return asyncio.run(work)


@settings(max_examples=150, deadline=None)
@given(ANSWERS, BUDGETS)
def test_the_budget_holds_for_what_is_said_and_for_the_text(
    answers: list[list[Fragment]], budget: int
) -> None:
    made = compiled(answers, budget)
    included = [v.candidate for v in made.verdicts if v.included]
    assert sum(c.tokens for c in included) <= budget
    assert sum(COUNT(c.fragment.content) for c in included) <= budget
    if budget >= FREE_FRAME and made.body:
        assert COUNT(framed("per-message", made.body)) <= budget


@settings(max_examples=100, deadline=None)
@given(ANSWERS, BUDGETS)
def test_every_fragment_is_named_in_the_order_of_rank(answers: list[list[Fragment]], budget: int) -> None:
    made = compiled(answers, budget)
    assert len(made.verdicts) == sum(map(len, answers))
    ranks = [(-v.candidate.priority, v.candidate.order, v.candidate.position) for v in made.verdicts]
    assert ranks == sorted(ranks)
    assert all(0 <= v.candidate.priority <= 100 for v in made.verdicts)


@settings(max_examples=100, deadline=None)
@given(ANSWERS, BUDGETS)
def test_an_omitted_fragment_would_not_fit_after_those_ranked_above_it(
    answers: list[list[Fragment]], budget: int
) -> None:
    found = [c for n, answer in enumerate(answers) for c in candidates(f"s{n}", n, answer, COUNT)]
    left = budget
    for verdict in choose(found, budget, {}):
        if verdict.included:
            left -= verdict.candidate.tokens
        elif verdict.reason == "over the budget":
            assert verdict.candidate.tokens > left or verdict.candidate.own > left - 40


@settings(max_examples=100, deadline=None)
@given(ANSWERS, BUDGETS)
def test_included_text_is_verbatim_and_the_rest_is_absent(answers: list[list[Fragment]], budget: int) -> None:
    made = compiled(answers, budget)
    for verdict in made.verdicts:
        if verdict.included:
            assert verdict.candidate.fragment.content in made.body
    assert bool(made.body) == any(v.included for v in made.verdicts)


@settings(max_examples=60, deadline=None)
@given(ANSWERS, st.integers(300, 2000), st.lists(st.integers(1, 100), min_size=4, max_size=4))
def test_a_source_stays_within_a_budget_of_its_own(
    answers: list[list[Fragment]], budget: int, caps: list[int]
) -> None:
    made = compiled(answers, budget, list(caps[: len(answers)]))
    for number in range(len(answers)):
        own = [v.candidate for v in made.verdicts if v.included and v.candidate.order == number]
        assert sum(c.tokens for c in own) <= caps[number]


@settings(max_examples=60, deadline=None)
@given(ANSWERS, st.integers(300, 2000))
def test_verbatim_fragments_never_reach_the_model(answers: list[list[Fragment]], budget: int) -> None:
    marked = [
        [Fragment(content=f"SECRET {f.content}", synthesize=False) if not f.synthesize else f for f in answer]
        for answer in answers
    ]
    shown: list[str] = []

    async def complete(messages: Any, system_prompt: str, max_tokens: int) -> str:
        shown.extend(text for _, text in messages)
        assert max_tokens == int(budget * 0.6)
        return "merged"

    made = compiled(marked, budget, complete=complete)
    assert not any("SECRET" in text for text in shown)
    for verdict in made.verdicts:
        if verdict.included and not verdict.candidate.fragment.synthesize:
            assert verdict.candidate.fragment.content in made.body
    free = any(v.included and v.candidate.fragment.synthesize for v in made.verdicts)
    assert made.synthesized == free
    assert bool(shown) == free


@settings(max_examples=60, deadline=None)
@given(ANSWERS, BUDGETS)
def test_the_stored_record_of_a_compilation_is_readable(answers: list[list[Fragment]], budget: int) -> None:
    made = compiled(answers, budget)
    made = made._replace(known=[("s0", fragment) for fragment in answers[0]])
    event = event_of(made, timestamp_ms=1, agent_id="a", point="per-message", budget=budget, tokens=1)
    assert events(added(added(None, event), event)) == [event, event]


def test_a_smaller_fragment_is_included_after_one_that_does_not_fit() -> None:
    answer = [
        Fragment(content="a", tokens=600, priority=90),
        Fragment(content="b", tokens=700, priority=80),
        Fragment(content="c", tokens=600, priority=70),
        Fragment(content="d", tokens=50, priority=60),
    ]
    made = compiled([answer], 1250)
    assert [v.included for v in made.verdicts] == [True, False, True, True]


def test_fragments_that_fill_the_budget_exactly_are_all_included() -> None:
    answer = [Fragment(content=text, tokens=size) for text, size in (("a", 500), ("b", 500), ("c", 250))]
    assert all(v.included for v in compiled([answer], 1250).verdicts)


def test_of_equals_the_source_that_was_registered_first_stays() -> None:
    answers = [[Fragment(content="first", tokens=700)], [Fragment(content="second", tokens=700)]]
    made = compiled(answers, 1250)
    assert [(v.candidate.source, v.included) for v in made.verdicts] == [("s0", True), ("s1", False)]


def test_a_fragment_that_comes_twice_is_shown_once() -> None:
    answer = [Fragment(content="same"), Fragment(content="same", priority=90), Fragment(content="other")]
    made = compiled([answer], 1250)
    assert [v.reason for v in made.verdicts] == ["", "repeated", ""]
    assert made.body.count("same") == 1


def test_no_names_of_sources_make_the_keys_of_two_items_alike() -> None:
    one = item_key("notes", Fragment(content="x", id="today:7"))
    assert one == "notes:today:7"
    assert item_key("notes:today", Fragment(content="x", id="7")) != one
    assert item_key("a", Fragment(content="x")) != item_key("a#", Fragment(content="x"))
    assert item_key("a:", Fragment(content="x", id="y")) != item_key("a%3A", Fragment(content="x", id="y"))
