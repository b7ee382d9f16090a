"""Finds engine classes by id: built-in ones, then those that installed packages register.

Built-in engines are named here as entry points are, `module:Class`, so that selecting one does not have to
read the metadata of every installed package.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from sidecar.engine.contract import ContextEngine

GROUP = "context_sidecar.engines"
BUILT_IN = {
    "legacy": "sidecar.engines.legacy:LegacyEngine",
    "full": "sidecar.engines.full:FullEngine",
    "terse": "sidecar.engines.terse:TerseEngine",
    "default": "sidecar.engines.default:DefaultEngine",
}


class EngineNotLoadable(Exception):
    """Raised when an engine id is unknown, or its code cannot be loaded; the text says what to fix."""


class Found(NamedTuple):
    """Where an engine comes from."""

    id: str
    target: str
    """`module:Class`."""
    origin: str
    """`built-in`, or the package that registers it."""


def find_engines() -> Iterator[Found]:
    """Every engine that is installed, built-in ones first; nothing is imported."""
    for engine_id, target in BUILT_IN.items():
        yield Found(engine_id, target, "built-in")
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name not in BUILT_IN:
            yield Found(point.name, point.value, point.dist.name if point.dist else "unknown package")


def load_engine(engine_id: str) -> type[ContextEngine]:
    """The class of an engine.

    Raises:
        EngineNotLoadable: no such engine, or its package does not import.
    """
    target = BUILT_IN.get(engine_id)
    if target is None:
        known = {found.id: found.target for found in find_engines()}
        target = known.get(engine_id)
        if target is None:
            names = ", ".join(sorted(known))
            raise EngineNotLoadable(f"there is no engine {engine_id!r}; installed are: {names}")
    engine = import_target(target)
    if not (isinstance(engine, type) and issubclass(engine, ContextEngine)):
        raise EngineNotLoadable(f"{target} is not a ContextEngine")
    return engine


def import_target(target: str) -> Any:
    """What `module:Name` names.

    Raises:
        EngineNotLoadable: the module does not import, or lacks the name.
    """
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        raise EngineNotLoadable(f"{target} does not load: {type(error).__name__}: {error}") from error
