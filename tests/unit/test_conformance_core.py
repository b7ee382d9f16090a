"""Suites, what running them makes, and how reports are written."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from xml.etree import ElementTree

import pytest

from sidecar.conformance import kit
from sidecar.conformance.kit import (
    Check,
    SubjectNotFound,
    Suite,
    Violation,
    expect,
    expect_equal,
    expect_found,
    expect_raises,
    fail,
    load,
    run,
    run_check,
    run_suite,
)
from sidecar.conformance.report import CheckResult, Report, as_json, as_junit, as_text

made: list[int] = []


@asynccontextmanager
async def provide() -> AsyncGenerator[list[int]]:
    made.append(len(made))
    yield made


def example() -> Suite[list[int]]:
    suite: Suite[list[int]] = Suite("example", ["speed", "depth"])

    @suite.check("first")
    async def passes(subject: list[int]) -> None:
        """All is well,
        on two lines."""
        expect(subject, "there is no subject")

    @suite.check("first")
    async def is_broken(subject: list[int]) -> None:
        """One is two."""
        expect_equal(1, 2, "one \0 \ud800")

    @suite.check("first", level="should")
    async def might_be_better(subject: list[int]) -> None:
        """It is better."""
        fail("it is not")

    @suite.check("first")
    async def raises(subject: list[int]) -> None:
        """It raises nothing."""
        raise KeyError("surprise")

    @suite.check("first", limit_s=0.01)
    async def hangs(subject: list[int]) -> None:
        """It ends."""
        await asyncio.Event().wait()

    @suite.check("deep", needs=("depth", "speed"))
    async def dives(subject: list[int]) -> None:
        """It dives."""

    return suite


def report(*patterns: str, declared: tuple[str, ...] = ("speed",)) -> Report:
    made.clear()
    return asyncio.run(run_suite(example(), provide, subject="it", declared=declared, patterns=patterns))


def test_every_check_ends_in_its_own_way_on_a_fresh_subject() -> None:
    found = report()
    assert {each.name: each.outcome for each in found.results} == {
        "first/passes": "passed",
        "first/is_broken": "failed",
        "first/might_be_better": "warned",
        "first/raises": "failed",
        "first/hangs": "failed",
        "deep/dives": "undeclared",
    }
    assert made == [0, 1, 2, 3, 4]
    assert not found.ok


def test_a_result_names_the_rule_and_the_finding() -> None:
    results = {each.name: each for each in report().results}
    assert results["first/passes"].rule == "All is well, on two lines."
    assert results["first/is_broken"].message == "one \0 \ud800: expected 2, found 1"
    assert "surprise" in str(results["first/raises"].message)
    assert "test_conformance_core" in str(results["first/raises"].trace)
    assert "0.01 s" in str(results["first/hangs"].message)


def test_a_check_runs_where_all_that_it_needs_is_declared() -> None:
    assert report("dives", declared=("speed", "depth")).ok
    assert not report("dives", declared=("depth",)).ok


def test_a_warning_leaves_the_report_good() -> None:
    assert report("passes", "might").ok


def test_an_unknown_capability_or_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match=r"height \(known: depth, speed\)"):
        report(declared=("height",))
    with pytest.raises(ValueError, match="nothing like it"):
        report("nothing like it")


def test_a_suite_takes_no_name_twice_and_no_unknown_need() -> None:
    suite = example()
    check = next(iter(suite))
    with pytest.raises(ValueError, match="two checks"):
        suite.add(check)
    with pytest.raises(ValueError, match="height"):
        suite.add(check._replace(name="first/new", needs=frozenset({"height"})))


def test_the_text_names_each_failure_with_its_rule() -> None:
    text = as_text(report())
    assert "FAIL  first/is_broken\n        rule:  One is two." in text
    assert "needs depth, speed" in text
    assert text.endswith("example conformance of it: 1 passed, 3 failed, 1 warned, 1 not declared\n")


def test_the_short_text_omits_passed_checks() -> None:
    assert "first/passes" not in as_text(report(), every_check=False)


def test_the_json_document_has_everything_under_camel_case_names() -> None:
    document = json.loads(as_json(report("passes")))
    assert document["counts"] == {"passed": 1, "failed": 0, "warned": 0, "undeclared": 0, "errors": 0}
    assert document["declared"] == ["speed"]
    assert document["results"][0]["name"] == "first/passes"


def test_the_junit_document_can_be_read_whatever_was_found() -> None:
    root = ElementTree.fromstring(as_junit(report()))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "3", "1")
    assert [case.get("name") for case in root if case.find("failure") is not None] == [
        "first/is_broken",
        "first/raises",
        "first/hangs",
    ]


def test_a_check_that_does_not_let_itself_be_cancelled_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_GRACE_S", 0.01)
    released = asyncio.Event()

    async def hold_on(subject: list[int]) -> None:
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    async def checked() -> CheckResult:
        check = Check("first/holds", "It ends.", hold_on, "must", frozenset(), 0.01)
        result = await run_check(check, provide)
        released.set()
        await asyncio.sleep(0)
        return result

    assert "0.01 s" in str(run(checked()).message)


def test_expectations_that_hold_say_nothing() -> None:
    async def raise_key_error() -> None:
        raise KeyError("x")

    expect_equal([1], [1], "a list")
    assert expect_found(0, "a number") == 0
    assert asyncio.run(expect_raises(KeyError, raise_key_error(), "it")).args == ("x",)


def test_failed_expectations_show_both_sides() -> None:
    async def return_one() -> int:
        return 1

    async def raise_key_error() -> int:
        raise KeyError("x")

    with pytest.raises(Violation, match="the number is missing"):
        expect_found(None, "the number")
    with pytest.raises(Violation, match=r"^sum\(\[1, 2\]\): expected 4, found 3$"):
        expect_equal(sum([1, 2]), 4)
    with pytest.raises(Violation, match=r"^expected to hold: 1 > 2 and '长'$"):
        expect(
            1 > 2 and "长",
        )
    with pytest.raises(Violation, match="expected ValueError, but it returned 1"):
        asyncio.run(expect_raises(ValueError, return_one(), "it"))
    with pytest.raises(Violation, match="expected ValueError, found KeyError"):
        asyncio.run(expect_raises(ValueError, raise_key_error(), "it"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nothing", "MODULE:NAME"),
        ("no_such_module_here:x", "cannot be imported"),
        ("json:nothing", "has no nothing"),
    ],
)
def test_an_unresolvable_name_is_reported_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(SubjectNotFound, match=reason):
        load(name)


def test_a_name_resolves_to_its_target() -> None:
    assert load("json:JSONDecoder.decode") is json.JSONDecoder.decode
