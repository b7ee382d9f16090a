"""Loads the class of an engine from where it was found, and tells why that does not work."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sidecar.engine.contract import ContextEngine
from sidecar.engine.sources import Found

ENV_TRACE = "SIDECAR_TRACE_ENGINES"
"""Any value but an empty one or `0` makes the sidecar log every step of loading an engine."""

_log = logging.getLogger(__name__)


class EngineNotLoadable(Exception):
    """Raised when an engine's code cannot be loaded; the text says what to fix."""


def load_engine(found: Found) -> type[ContextEngine]:
    """The class of an engine.

    Raises:
        EngineNotLoadable: its package does not import, or holds something else.
    """
    if found.problem:
        raise EngineNotLoadable(found.problem)
    trace("engine %s: %s, loading %s", found.id, found.described(), found.target)
    began = time.perf_counter()
    make_importable(found.places)
    engine = import_target(found.target)
    if not (isinstance(engine, type) and issubclass(engine, ContextEngine)):
        raise EngineNotLoadable(f"{found.target} is not a ContextEngine")
    info = getattr(engine, "info", None)
    if getattr(info, "id", None) != found.id:
        raise EngineNotLoadable(
            f"{found.target} is registered as {found.id!r}, but its info.id is "
            f"{getattr(info, 'id', None)!r}: make them the same"
        )
    trace("engine %s: loaded in %.0f ms", found.id, (time.perf_counter() - began) * 1000)
    return engine


def import_target(target: str) -> Any:
    """What `module:Name` names.

    Raises:
        EngineNotLoadable: the module does not import, or lacks the name.
    """
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        trace("%s does not load", target, exc_info=error)
        text = " ".join(str(error).split())[:500]
        raise EngineNotLoadable(f"{target} does not load: {type(error).__name__}: {text}") from error


def make_importable(places: Sequence[str]) -> None:
    """Let modules be imported from these folders; they come after the standard library alone."""
    for place in reversed(places):
        if place not in sys.path:
            at = next((i for i, known in enumerate(sys.path) if _holds_packages(known)), len(sys.path))
            sys.path.insert(at, place)


def trace(message: str, *values: object, exc_info: BaseException | None = None) -> None:
    """A line in the log where the environment asks for it, whatever the log level."""
    if os.environ.get(ENV_TRACE, "") not in ("", "0"):
        _log.setLevel(logging.INFO)
        _log.info(message, *values, exc_info=exc_info)


def _holds_packages(place: str) -> bool:
    return place.rstrip("/\\").endswith(("site-packages", "dist-packages"))
