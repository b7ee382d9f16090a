"""The kit of every suite: named checks that each prove one rule, how they are run, and the report."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeVar

from msgspec import Struct

from sidecar import __version__

S = TypeVar("S")

Level = Literal["must", "should"]
"""A broken `must` fails the suite, a broken `should` is a warning."""

LIMIT_S = 30.0
"""Seconds that a check may take where it sets no limit of its own."""


class Check(NamedTuple, Generic[S]):
    """One check. It passes where `run` returns, and fails where that raises, whatever it raises."""

    name: str
    """Unique in its suite, and the same whether it passes or fails: `area/what_is_checked`."""
    rule: str
    """The rule that it proves, in one sentence."""
    run: Callable[[S], Awaitable[None]]
    level: Level
    needs: frozenset[str]
    """Capabilities without which the rule says nothing about a subject."""
    limit_s: float
    """Seconds after which it has failed."""

    @property
    def area(self) -> str:
        """The part of the name in front of the slash."""
        return self.name.partition("/")[0]


class Suite(Generic[S]):
    """Checks in the order in which they were added."""

    def __init__(self, name: str, capabilities: Collection[str] = ()) -> None:
        self.name = name
        self.capabilities = frozenset(capabilities)
        """What a subject may declare to offer."""
        self._checks: dict[str, Check[S]] = {}

    def __iter__(self) -> Iterator[Check[S]]:
        return iter(self._checks.values())

    def __len__(self) -> int:
        return len(self._checks)

    def add(self, check: Check[S]) -> None:
        """Take a check in.

        Raises:
            ValueError: its name is taken, or it needs what no subject can declare.
        """
        if check.name in self._checks:
            raise ValueError(f"there are two checks of the name {check.name!r}")
        if not check.needs <= self.capabilities:
            raise ValueError(f"{check.name} needs unknown capabilities: {check.needs - self.capabilities}")
        self._checks[check.name] = check

    def area(self, name: str, *needs: str) -> Area[S]:
        """A part of the suite whose checks all need these capabilities."""
        return Area(self, name, frozenset(needs))

    def selected(self, patterns: Collection[str] = ()) -> list[Check[S]]:
        """The checks of which the name contains one of the patterns; all of them where there is none."""
        return [check for check in self if not patterns or any(pattern in check.name for pattern in patterns)]

    def known(self, declared: Collection[str]) -> frozenset[str]:
        """What was declared, if the suite knows all of it.

        Raises:
            ValueError: a capability is unknown.
        """
        unknown = sorted(set(declared) - self.capabilities)
        if unknown:
            names = ", ".join(sorted(self.capabilities)) or "none"
            raise ValueError(f"unknown capabilities: {', '.join(unknown)} (there are: {names})")
        return frozenset(declared)


class Area(Generic[S]):
    """Checks that belong together; their names begin with that of the area."""

    def __init__(self, suite: Suite[S], name: str, needs: frozenset[str]) -> None:
        self._suite = suite
        self._name = name
        self._needs = needs

    def check(
        self, *needs: str, level: Level = "must", limit_s: float = LIMIT_S
    ) -> Callable[[Callable[[S], Awaitable[None]]], Callable[[S], Awaitable[None]]]:
        """Adds the decorated function: its name ends the check's, its docstring is the rule."""

        def add(run: Callable[[S], Awaitable[None]]) -> Callable[[S], Awaitable[None]]:
            name = run.__name__
            rule = re.sub(r"\s+", " ", run.__doc__ or name.replace("_", " ")).strip()
            self._suite.add(
                Check(f"{self._name}/{name}", rule, run, level, self._needs.union(needs), limit_s)
            )
            return run

        return add


E = TypeVar("E", bound=BaseException)
T = TypeVar("T")

LONGEST = 300
"""Characters of a value that are shown."""


class Violation(Exception):
    """Raised by a check where the rule that it proves is broken."""


class NotDeclared(Exception):
    """Raised by a check that says nothing about the subject, which does not claim what it needs."""


class SuiteFault(Exception):
    """Raised where the suite itself has failed, and nothing is known about the subject."""


def fail(what: str) -> NoReturn:
    """Say that the rule is broken.

    Raises:
        Violation: always.
    """
    raise Violation(what)


def expect(holds: object, what: str) -> None:
    """Demand that something holds; `what` says what was found instead.

    Raises:
        Violation: it does not.
    """
    if not holds:
        raise Violation(what)


def expect_equal(found: object, expected: object, what: str) -> None:
    """Demand that a value is as expected; `what` names the value.

    Raises:
        Violation: it differs.
    """
    if found != expected:
        raise Violation(f"{what}: expected {_shown(expected)}, found {_shown(found)}")


def expect_found(value: T | None, what: str) -> T:
    """The value, which must be there.

    Raises:
        Violation: it is `None`.
    """
    if value is None:
        raise Violation(f"{what} is not there")
    return value


async def expect_raises(kind: type[E], attempt: Awaitable[object], what: str) -> E:
    """The error that the attempt raised; it must be of this kind.

    Raises:
        Violation: nothing was raised, or something else.
    """
    try:
        result = await attempt
    except kind as error:
        return error
    except Exception as error:
        raise Violation(f"{what}: expected {kind.__name__}, found {type(error).__name__}: {error}") from error
    raise Violation(f"{what}: expected {kind.__name__}, but it returned {_shown(result)}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


Outcome = Literal["passed", "failed", "warned", "undeclared", "error"]
"""`warned` is a broken `should`; `undeclared` says nothing, for the subject does not claim what it needs;
`error` is a fault of the suite itself."""


class CheckResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one check ended."""

    name: str
    rule: str
    level: Level
    outcome: Outcome
    seconds: float = 0.0
    message: str | None = None
    """What was found, where the rule is broken."""
    trace: str | None = None
    """Where in the subject it broke, if something else than a check raised."""
    needs: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        """The part of the name in front of the slash."""
        return self.name.partition("/")[0]


class Counts(Struct, frozen=True, kw_only=True):
    """How many checks ended in which way."""

    passed: int
    failed: int
    warned: int
    undeclared: int
    errors: int = 0


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    """The results of a suite for one subject, in the order of the checks."""

    suite: str
    subject: str
    version: str
    """Version of the package that the suite came with."""
    declared: tuple[str, ...]
    """Capabilities that the subject claims."""
    counts: Counts
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether no `must` is broken, the suite did not fail, and anything was checked at all."""
        return not self.counts.failed and not self.counts.errors and bool(self.counts.passed)


def counted(results: tuple[CheckResult, ...]) -> Counts:
    """The counts of these results."""
    outcomes = [result.outcome for result in results]
    return Counts(
        passed=outcomes.count("passed"),
        failed=outcomes.count("failed"),
        warned=outcomes.count("warned"),
        undeclared=outcomes.count("undeclared"),
        errors=outcomes.count("error"),
    )


Provide = Callable[[], AbstractAsyncContextManager[S]]
"""Makes a fresh subject for one check, and takes it away afterwards."""

_GRACE_S = 10.0
"""Seconds that a check which has come to its limit has for ending; then it is left alone."""
_FRAMES = 8
"""Frames of a traceback that are told, the innermost."""


async def run_suite(
    suite: Suite[S],
    provide: Provide[S],
    *,
    subject: str,
    declared: Collection[str] = (),
    patterns: Collection[str] = (),
    told: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on one subject, which claims to offer what is `declared`.

    `patterns` choose among the checks by their names; `told` is called with each result as it comes.

    Raises:
        ValueError: a capability is unknown, or no check is chosen.
    """
    known = suite.known(declared)
    results = await run_checks(chosen(suite, patterns), provide, known, told=told)
    return report_of(suite.name, subject, known, results)


def chosen(suite: Suite[S], patterns: Collection[str], expected: Collection[str] = ()) -> Sequence[Check[S]]:
    """The checks that have one of the patterns in their names; `expected` names checks that may fail.

    Raises:
        ValueError: no check is chosen, or an expected one does not exist.
    """
    checks = suite.selected(patterns)
    if not checks:
        raise ValueError(f"no check has one of these in its name: {', '.join(patterns)}")
    unknown = sorted(set(expected) - {check.name for check in suite})
    if unknown:
        raise ValueError(f"there are no checks of these names: {', '.join(unknown)}")
    return checks


async def run_checks(
    checks: Sequence[Check[S]],
    provide: Provide[S],
    declared: Collection[str],
    *,
    expected: Collection[str] = (),
    told: Callable[[CheckResult], object] | None = None,
) -> list[CheckResult]:
    """The results, in order; checks that need more than what is `declared` are not run."""
    results: list[CheckResult] = []
    for check in checks:
        result = await run_check(check, provide) if check.needs <= set(declared) else undeclared(check)
        results.append(judged(result, expected))
        if told is not None:
            told(results[-1])
    return results


async def run_check(check: Check[S], provide: Provide[S]) -> CheckResult:
    """The result of one check. Making and removing the subject counts as a part of it."""
    began = time.perf_counter()
    message = trace = None
    outcome: Outcome = "failed" if check.level == "must" else "warned"
    try:
        await _within(check.limit_s, _carried_out(check, provide))
        outcome = "passed"
    except Violation as broken:
        message = str(broken)
    except NotDeclared as reason:
        outcome, message = "undeclared", str(reason)
    except SuiteFault as error:
        outcome, message, trace = "error", str(error), _trace(error.__cause__ or error)
    except TimeoutError as error:
        message, trace = f"it did not end within {check.limit_s:g} s", _trace(error)
    except Exception as error:
        message, trace = f"{type(error).__name__}: {error}", _trace(error)
    return CheckResult(
        name=check.name,
        rule=check.rule,
        level=check.level,
        outcome=outcome,
        seconds=round(time.perf_counter() - began, 4),
        message=message,
        trace=trace,
        needs=tuple(sorted(check.needs)),
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. Unlike `asyncio.run` it does not wait for what a subject has left behind."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def undeclared(check: Check[S]) -> CheckResult:
    """The result of a check that says nothing about the subject."""
    return CheckResult(
        name=check.name,
        rule=check.rule,
        level=check.level,
        outcome="undeclared",
        needs=tuple(sorted(check.needs)),
    )


def report_of(suite: str, subject: str, declared: Collection[str], results: Sequence[CheckResult]) -> Report:
    """The report that these results make."""
    kept = tuple(results)
    return Report(
        suite=suite,
        subject=subject,
        version=__version__,
        declared=tuple(sorted(declared)),
        counts=counted(kept),
        results=kept,
    )


async def _carried_out(check: Check[S], provide: Provide[S]) -> None:
    async with provide() as subject:
        await check.run(subject)


async def _within(limit_s: float, work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work, but no longer, whatever it makes of being cancelled.

    Raises:
        TimeoutError: it has not ended in time.
    """
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=limit_s)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_GRACE_S)
        raise TimeoutError
    task.result()


def _trace(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return "".join(traceback.format_list(frames)).rstrip()


def read_expected(text: str) -> frozenset[str]:
    """The names of checks in a list: one a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


def judged(result: CheckResult, expected: Collection[str]) -> CheckResult:
    """The result in the light of what was expected: a known failure warns, a check that passes fails."""
    if result.name not in expected:
        return result
    if result.outcome == "failed":
        return _with(result, "warned", f"known to fail: {result.message}")
    if result.outcome == "passed":
        return _with(result, "failed", "it passes, and is listed as known to fail: remove the entry")
    return result


def _with(result: CheckResult, outcome: str, message: str) -> CheckResult:
    from msgspec.structs import replace

    return replace(result, outcome=outcome, message=message)


class SubjectNotFound(Exception):
    """Raised when a name leads to nothing; the text says why."""


def load(name: str) -> Any:
    """What the name stands for; modules in the working directory are found too, behind installed ones.

    Raises:
        SubjectNotFound: it is no such name, or there is nothing under it.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise SubjectNotFound(f"{name!r} is not of the form MODULE:NAME, such as my_package.places:MyPlace")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise SubjectNotFound(f"{module_name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise SubjectNotFound(f"{module_name} has no {attribute}") from error
    return found
