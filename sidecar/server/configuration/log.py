"""Which log is asked for: by the command line, the host, the environment, the file, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from sidecar.server.configuration.settings import LogSettings

if TYPE_CHECKING:
    from sidecar.server.configuration.model import Log

ENV_LEVEL = "CONTEXT_SIDECAR_LOG_LEVEL"
ENV_FORMAT = "CONTEXT_SIDECAR_LOG_FORMAT"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_VARIABLES = (("level", ENV_LEVEL, LEVELS), ("format", ENV_FORMAT, FORMATS))


def log_settings(
    environ: Mapping[str, str],
    warnings: list[str],
    file: Log | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LogSettings:
    """The log as configured; `warnings` gets a line for each variable that has no such value."""
    given: dict[str, Any] = {}
    if file is not None:
        given = {"level": file.level, "format": file.format, "slow_call_ms": file.slowCallMs}
    for name, variable, known in _VARIABLES:
        value = environ.get(variable, "")
        if not value or name in (overrides or {}):
            continue
        if value in known:
            given[name] = value
        else:
            warnings.append(f"{variable} is {value[:50]!r}, which is none of {', '.join(known)}")
    return structs.replace(LogSettings(), **given) if given else LogSettings()
