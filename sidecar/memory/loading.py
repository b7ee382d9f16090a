"""Finds memory sources by id: built-in ones, then those that installed packages register."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sidecar.memory.contract import SourceHost, SourceUnavailable
from sidecar.memory.coordinator import Asked

GROUP = "context_sidecar.memory"
BUILT_IN: Mapping[str, str] = {
    "episodes": "sidecar.memory.episodes:EpisodesSource",
    "workspace": "sidecar.memory.sources.workspace:WorkspaceSource",
    "history": "sidecar.memory.sources.history:HistorySource",
    "facts": "sidecar.memory.sources.facts:FactsSource",
    "http": "sidecar.memory.sources.http:HttpSource",
}
"""Id of a source, and `module:Class`."""


def load_source(source_id: str, host: SourceHost, config: Mapping[str, Any]) -> Asked:
    """The source of that id, made with its settings; `tokenBudget` among them is its own budget.

    Raises:
        SourceUnavailable: there is none, or it does not load, or its settings are wrong.
    """
    target = BUILT_IN.get(source_id) or _installed(source_id)
    module, _, name = target.partition(":")
    budget: object = config.get("tokenBudget")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 1):
        raise SourceUnavailable(
            f"plugins.entries.{source_id}.config.tokenBudget must be a whole number of at least 1"
        )
    try:
        source = getattr(import_module(module), name)(host)
    except SourceUnavailable:
        raise
    except Exception as error:
        raise SourceUnavailable(f"{target} does not load: {type(error).__name__}") from error
    if not (callable(getattr(source, "get_context", None)) and hasattr(source, "injection_points")):
        raise SourceUnavailable(f"{target} is no memory source: it lacks get_context or injection_points")
    source.name = source_id
    return Asked(source, budget)


def _installed(source_id: str) -> str:
    from importlib.metadata import entry_points

    points = {point.name: point.value for point in entry_points(group=GROUP)}
    if source_id not in points:
        known = ", ".join(sorted({*BUILT_IN, *points})) or "none"
        raise SourceUnavailable(f"there is no memory source {source_id!r}; installed are: {known}")
    return points[source_id]
