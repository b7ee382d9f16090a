"""The kit of every suite: named checks that each prove one rule, what they expect, and how they are run."""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar, cast

from sidecar.conformance.report import CheckResult, Level, Outcome, Report

S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

LIMIT_S = 30.0
"""Seconds that a check inside this process may take if it sets no limit of its own."""
PEER_LIMIT_S = 120.0
"""The same for a check that starts processes."""


class Violation(Exception):
    """Raised by a check if the subject breaks the rule."""


class NotDeclared(Exception):
    """Raised by a check if the subject does not claim what the rule is about."""


class SuiteFault(Exception):
    """Raised if the suite itself fails, so that nothing is known about the subject."""


class Unusable(Exception):
    """Raised if a subject cannot be checked at all, such as a command that does not start."""


class Check(NamedTuple, Generic[S]):
    """One check: it passes if `run` returns, and fails if `run` raises anything."""

    name: str
    """`area/what_is_checked`, unique in its suite."""
    rule: str
    """The rule that it proves, in one sentence, with the clauses of the specification that say so."""
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
        """Add a check.

        Raises:
            ValueError: its name is taken, or it needs a capability that the suite does not know.
        """
        if check.name in self._checks:
            raise ValueError(f"there are two checks of the name {check.name!r}")
        if not check.needs <= self.capabilities:
            raise ValueError(f"{check.name} needs unknown capabilities: {check.needs - self.capabilities}")
        self._checks[check.name] = check

    def check(
        self,
        area: str,
        *clauses: str,
        needs: Collection[str] = (),
        level: Level = "must",
        limit_s: float | None = None,
    ) -> Callable[[Callable[[S], Awaitable[None] | None]], Callable[[S], Awaitable[None] | None]]:
        """Decorates a check: its name ends the check's, its docstring is the rule, by default its name.

        A plain function runs in a thread, and checks another process: any exception but those of this file
        is then a fault of the suite. A coroutine function runs what it checks, so any exception is a failure.
        """

        def add(run: Callable[[S], Awaitable[None] | None]) -> Callable[[S], Awaitable[None] | None]:
            name = run.__name__
            rule = re.sub(r"\s+", " ", run.__doc__ or f"{name.replace('_', ' ').capitalize()}.").strip()
            if clauses:
                rule = f"{rule} [{', '.join(clauses)}]"
            own = inspect.iscoroutinefunction(run)
            limit = limit_s or (LIMIT_S if own else PEER_LIMIT_S)
            work = cast("Callable[[S], Awaitable[None]]", run) if own else _in_thread(run)
            self.add(Check(f"{area}/{name}", rule, work, level, frozenset(needs), limit))
            return run

        return add

    def selected(self, patterns: Collection[str] = ()) -> list[Check[S]]:
        """The checks whose names contain one of the patterns; all checks if there are no patterns."""
        return [check for check in self if not patterns or any(pattern in check.name for pattern in patterns)]


def _in_thread(run: Callable[[S], object]) -> Callable[[S], Awaitable[None]]:
    async def in_thread(subject: S) -> None:
        try:
            await asyncio.to_thread(run, subject)
        except (Violation, NotDeclared, Unusable):
            raise
        except Exception as error:
            raise SuiteFault(f"{type(error).__name__}: {error}") from error

    return in_thread


# Expectations. They are functions, not `assert`, so that they hold under `python -O` and show both values.

_LONGEST = 300
"""Characters of a value that are shown."""


def fail(what: str) -> NoReturn:
    """Fail the check; `what` says what was found.

    Raises:
        Violation: always.
    """
    raise Violation(what)


def expect(holds: object, what: str = "") -> None:
    """Demand that a condition holds; `what` says what was found instead, by default the condition's source.

    Raises:
        Violation: it does not hold.
    """
    if not holds:
        raise Violation(what or f"this does not hold: {_source()}")


def expect_equal(found: object, expected: object, what: str = "") -> None:
    """Demand that a value is as expected; `what` names the value, by default by its source.

    Raises:
        Violation: the value differs.
    """
    if found != expected:
        raise Violation(f"{what or _source()}: expected {_shown(expected)}, found {_shown(found)}")


def expect_found(value: T | None, what: str = "") -> T:
    """The value, which must not be `None`; `what` names it, by default by its source.

    Raises:
        Violation: it is `None`.
    """
    if value is None:
        raise Violation(f"{what or _source()} is missing")
    return value


async def expect_raises(kind: type[E], attempt: Awaitable[object], what: str) -> E:
    """The error that the attempt raises, which must be of this kind.

    Raises:
        Violation: nothing is raised, or something else.
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
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _source() -> str:
    """The source of the first argument of the expectation that the check has just called."""
    frame = inspect.currentframe()
    frame = frame.f_back.f_back if frame and frame.f_back else None
    if frame is None:
        return "a value"
    code = frame.f_code
    first, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return "a value"
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"".join(lines).decode(), mode="eval").body
    except (SyntaxError, ValueError):
        return "a value"
    return ast.unparse(call.args[0]).replace("await ", "") if isinstance(call, ast.Call) else "a value"


# Running

Provide = Callable[[], AbstractAsyncContextManager[S]]
"""Makes a fresh subject for one check, and takes it away afterwards."""

_GRACE_S = 10.0
"""Seconds that a check has for ending once it is over its limit; then it is left alone."""
_FRAMES = 8
"""Innermost frames of a traceback that a result keeps."""


async def run_suite(
    suite: Suite[S],
    provide: Provide[S],
    *,
    subject: str,
    declared: Collection[str] = (),
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    on_result: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on one subject, which claims to offer what is `declared`; other checks are not run.

    `patterns` choose among the checks by their names, `expected` names checks that are known to fail, and
    `on_result` is called with each result as it comes.

    Raises:
        ValueError: a capability is unknown, no check is chosen, or an expected one does not exist.
    """
    if unknown := sorted(set(declared) - suite.capabilities):
        names = ", ".join(sorted(suite.capabilities)) or "none"
        raise ValueError(f"unknown capabilities: {', '.join(unknown)} (there are: {names})")
    checks = suite.selected(patterns)
    if not checks:
        raise ValueError(f"no check has one of these in its name: {', '.join(patterns)}")
    if unknown := sorted(set(expected) - {check.name for check in suite}):
        raise ValueError(f"there are no checks of these names: {', '.join(unknown)}")
    results: list[CheckResult] = []
    for check in checks:
        runs = check.needs <= set(declared)
        result = await run_check(check, provide) if runs else _result(check, "undeclared")
        results.append(result.judged(result.name in expected))
        if on_result is not None:
            on_result(results[-1])
    return Report.of(suite.name, subject, declared, results)


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
    return _result(check, outcome, round(time.perf_counter() - began, 4), message, trace)


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. Unlike `asyncio.run` it does not wait for what a subject leaves behind."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def _result(
    check: Check[S],
    outcome: Outcome,
    seconds: float = 0.0,
    message: str | None = None,
    trace: str | None = None,
) -> CheckResult:
    return CheckResult(
        name=check.name,
        rule=check.rule,
        level=check.level,
        outcome=outcome,
        seconds=seconds,
        message=message,
        trace=trace,
        needs=tuple(sorted(check.needs)),
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


class SubjectNotFound(Exception):
    """Raised when a name leads to nothing; the text says why."""


def load(name: str) -> Any:
    """What `MODULE:NAME` stands for; modules in the working directory are found too, behind installed ones.

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
