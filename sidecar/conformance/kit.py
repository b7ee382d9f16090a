"""What every suite is built from: named checks of one rule each, expectations, and the runner."""

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
"""Default time limit of a check that runs inside this process, in seconds."""
PEER_LIMIT_S = 120.0
"""Default time limit of a check that drives another process, in seconds."""


class Violation(Exception):
    """Raised by a check if the subject breaks the rule."""


class NotDeclared(Exception):
    """Raised by a check if the subject does not claim the feature that the rule covers."""


class SuiteFault(Exception):
    """Raised if the suite itself fails; says nothing about the subject."""


class Unusable(Exception):
    """Raised if a subject cannot be checked at all, such as a command that does not start."""


class Check(NamedTuple, Generic[S]):
    """One check: it passes if `run` returns, and fails if `run` raises anything."""

    name: str
    """`area/what_is_checked`, unique in its suite."""
    rule: str
    """The rule that it proves, in one sentence, followed by the clauses of the specification behind it."""
    run: Callable[[S], Awaitable[None]]
    level: Level
    needs: frozenset[str]
    """Capabilities that a subject must declare for the rule to apply."""
    limit_s: float
    """Seconds after which the check fails."""

    @property
    def area(self) -> str:
        """The part of the name in front of the slash."""
        return self.name.partition("/")[0]


class Suite(Generic[S]):
    """Checks in the order in which they were added."""

    def __init__(self, name: str, capabilities: Collection[str] = ()) -> None:
        self.name = name
        self.capabilities = frozenset(capabilities)
        """The capabilities that a subject may declare."""
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
            raise ValueError(f"two checks have the name {check.name!r}")
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
        """Decorator that adds a function as the check `area/function_name`.

        The docstring states the rule; without one, the function's name does. A coroutine function runs the
        subject inside this process, so any exception is a failure. A plain function runs in a thread and
        checks another process: exceptions that this file does not define are faults of the suite.
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
        """The checks whose names contain one of the patterns, or every check without patterns."""
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
"""Maximum length of a value in a message, in characters."""


def fail(what: str) -> NoReturn:
    """Fail the check; `what` describes the finding.

    Raises:
        Violation: always.
    """
    raise Violation(what)


def expect(holds: object, what: str = "") -> None:
    """Require a condition; `what` describes the finding if it fails, by default with the condition's source.

    Raises:
        Violation: it does not hold.
    """
    if not holds:
        raise Violation(what or f"expected to hold: {_source()}")


def expect_equal(found: object, expected: object, what: str = "") -> None:
    """Require two equal values; `what` names the first, by default with its source.

    Raises:
        Violation: the value differs.
    """
    if found != expected:
        raise Violation(f"{what or _source()}: expected {_shown(expected)}, found {_shown(found)}")


def expect_found(value: T | None, what: str = "") -> T:
    """Return the value, which must not be `None`; `what` names it, by default with its source.

    Raises:
        Violation: it is `None`.
    """
    if value is None:
        raise Violation(f"{what or _source()} is missing")
    return value


async def expect_raises(kind: type[E], attempt: Awaitable[object], what: str) -> E:
    """Return the error that the attempt raises, which must be of this kind.

    Raises:
        Violation: the attempt returns, or raises something else.
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
    """The source of the first argument that the check passed to the current expectation."""
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
"""Creates a fresh subject for one check and removes it afterwards."""

_GRACE_S = 10.0
"""Seconds that a cancelled check has to end before it is abandoned."""
_FRAMES = 8
"""Number of innermost traceback frames kept in a result."""


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
    """Run the suite on one subject and return the report.

    Checks that need capabilities missing from `declared` do not run; their outcome is `undeclared`.
    `patterns` selects checks by name, `expected` names checks that are known to fail, and `on_result`
    receives each result as soon as it is known.

    Raises:
        ValueError: a declared capability is unknown, no check matches `patterns`, or `expected` names a check
            that does not exist.
    """
    if unknown := sorted(set(declared) - suite.capabilities):
        names = ", ".join(sorted(suite.capabilities)) or "none"
        raise ValueError(f"unknown capabilities: {', '.join(unknown)} (known: {names})")
    checks = suite.selected(patterns)
    if not checks:
        raise ValueError(f"no check name contains any of: {', '.join(patterns)}")
    if unknown := sorted(set(expected) - {check.name for check in suite}):
        raise ValueError(f"unknown checks: {', '.join(unknown)}")
    results: list[CheckResult] = []
    for check in checks:
        runs = check.needs <= set(declared)
        result = await run_check(check, provide) if runs else _result(check, "undeclared")
        results.append(result.judged(result.name in expected))
        if on_result is not None:
            on_result(results[-1])
    return Report.of(suite.name, subject, declared, results)


async def run_check(check: Check[S], provide: Provide[S]) -> CheckResult:
    """Run one check and return its result; creating and removing the subject counts towards it."""
    began = time.perf_counter()
    message = trace = None
    outcome: Outcome = "failed" if check.level == "must" else "warned"
    try:
        await _within(check.limit_s, _run_once(check, provide))
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
    """Run a coroutine and return its result; unlike `asyncio.run`, do not wait for tasks left behind."""
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


async def _run_once(check: Check[S], provide: Provide[S]) -> None:
    async with provide() as subject:
        await check.run(subject)


async def _within(limit_s: float, work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work up to the limit, even if it ignores cancellation.

    Raises:
        TimeoutError: the work is not done in time.
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
    """Raised if a name cannot be resolved; the text says why."""


def load(name: str) -> Any:
    """Import the object `MODULE:NAME`; the working directory is searched last.

    Raises:
        SubjectNotFound: the name has another form, or does not resolve.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise SubjectNotFound(f"{name!r} does not have the form MODULE:NAME (my_package.places:MyPlace)")
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
