"""Loads an engine's class, and explains failures to do so."""

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
"""If set to anything but `0` or an empty value, the sidecar logs every step of loading an engine."""

_log = logging.getLogger(__name__)


class EngineNotLoadable(Exception):
    """Raised when an engine's code cannot be loaded; the text says what to fix."""


def load_engine(found: Found) -> type[ContextEngine]:
    """The class of an engine.

    Raises:
        EngineNotLoadable: its module does not import, or the target is not that engine.
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
    """The object that `module:Name` names.

    Raises:
        EngineNotLoadable: the module does not import, or lacks the name.
    """
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        trace("cannot load %s", target, exc_info=error)
        text = " ".join(str(error).split())[:500]
        raise EngineNotLoadable(f"cannot load {target}: {type(error).__name__}: {text}") from error


def make_importable(places: Sequence[str]) -> None:
    """Make modules in these folders importable, ahead of installed packages."""
    for place in reversed(places):
        if place not in sys.path:
            at = next((i for i, known in enumerate(sys.path) if _holds_packages(known)), len(sys.path))
            sys.path.insert(at, place)


def trace(message: str, *values: object, exc_info: BaseException | None = None) -> None:
    """Log a line, regardless of the log level, if the environment enables tracing."""
    if os.environ.get(ENV_TRACE, "") not in ("", "0"):
        _log.setLevel(logging.INFO)
        _log.info(message, *values, exc_info=exc_info)


def _holds_packages(place: str) -> bool:
    return place.rstrip("/\\").endswith(("site-packages", "dist-packages"))
