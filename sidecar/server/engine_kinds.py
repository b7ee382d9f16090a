"""What can be told of an engine's class: its members, its description, its settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sidecar.engine.contract import OPTIONAL_MEMBERS, ContextEngine, StoringEngine
from sidecar.engine.contract import EngineInfo as Declared
from sidecar.engine.loading import import_target
from sidecar.protocol.base import EngineInfo, FallbackFor

if TYPE_CHECKING:
    from pydantic import BaseModel

_log = logging.getLogger(__name__)

WIRE_NAMES = {
    "after_turn": "afterTurn",
    "prepare_spawn": "prepareSpawn",
    "spawn_ended": "subagentEnded",
}


class SettingsRefused(Exception):
    """Raised when a setting of an engine is wrong; the text names the key."""


def optional_members(kind: type[ContextEngine]) -> tuple[str, ...]:
    """The optional members that the engine has itself, in Python's spelling."""
    return tuple(m for m in OPTIONAL_MEMBERS if getattr(kind, m) is not getattr(ContextEngine, m))


def stores_plainly(kind: type[ContextEngine]) -> bool:
    """True where ingesting is left to the store, so that no coroutine is needed."""
    return kind.ingest is StoringEngine.ingest


def describe(info: Declared, own: Iterable[str], fallback_for: FallbackFor | None = None) -> EngineInfo:
    """An engine in the words of the protocol; `own` are its optional members."""
    return EngineInfo(
        id=info.id,
        name=info.name,
        version=info.version,
        owns_compaction=info.owns_compaction,
        turn_maintenance_mode=info.turn_maintenance_mode,
        implements=[WIRE_NAMES.get(m, m) for m in ("ingest", "assemble", "compact", *own)],
        host_requirements=list(info.host_requirements) or None,
        fallback_for=fallback_for,
    )


def declared(info: EngineInfo) -> Declared:
    """The same as an engine declares it."""
    return Declared(
        id=info.id,
        name=info.name,
        version=info.version,
        owns_compaction=info.owns_compaction,
        turn_maintenance_mode=info.turn_maintenance_mode,
        host_requirements=tuple(info.host_requirements or ()),
    )


def validated_settings(kind: type[ContextEngine], values: Mapping[str, Any]) -> BaseModel | None:
    """The engine's settings, `None` where nothing is configured and its defaults hold.

    Raises:
        SettingsRefused: a value is wrong.
    """
    if not values or kind.settings_model is None:
        return None
    model = kind.settings_model
    if isinstance(model, str):
        model = import_target(model)
    from pydantic import ValidationError

    for name in values:
        if name not in model.model_fields:
            _log.warning("unknown setting plugins.entries.%s.config.%s", kind.info.id, name)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, ("plugins.entries", kind.info.id, "config", *first["loc"])))
        raise SettingsRefused(f"{where}: {first['msg']}") from None
