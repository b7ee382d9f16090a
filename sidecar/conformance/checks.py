"""What a suite is made of: named checks, each of which proves one rule about a subject."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Generic, Literal, NamedTuple, TypeVar

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

    def area(self, name: str, *needs: str) -> "Area[S]":
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
