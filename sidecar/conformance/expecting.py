"""What checks say when a rule is broken; unlike `assert`, it is there under `python -O` too."""

from collections.abc import Awaitable
from typing import NoReturn, TypeVar

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
