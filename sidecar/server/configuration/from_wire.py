"""Takes out of the host's overrides what only the operator may decide: code to run, files to write."""

from __future__ import annotations

from typing import Any, cast

FILE_ONLY_AT_ALL = ("retention",)
"""Tables that decide about the sessions of other hosts, and which files are written."""
FILE_ONLY = ("load",)
"""Members of `plugins` that decide which code is loaded."""
FILE_ONLY_OF_ENTRY = ("isolation", "memoryLimitMb")
"""Members of an entry that decide where its code runs."""
SERVICE = ("plugins", "entries", "http", "config")
"""Where the memory source `http` has its settings."""
SECRETS_OF_SERVICE = ("apiKey", "headers")

FILE_ONLY_OF_EPISODES = ("path",)
"""Members of `episodes` that name a file."""


def from_the_wire(overrides: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The overrides without such members; `warnings` gets a line for each of them."""
    episodes: Any = overrides.get("episodes")
    if isinstance(episodes, dict):
        kept_episodes = _without(
            "episodes", cast("dict[str, Any]", episodes), FILE_ONLY_OF_EPISODES, warnings
        )
        overrides = {**overrides, "episodes": kept_episodes}
    overrides = _without("", overrides, FILE_ONLY_AT_ALL, warnings)
    plugins: Any = overrides.get("plugins")
    if not isinstance(plugins, dict):
        return overrides
    kept = _without("plugins", cast("dict[str, Any]", plugins), FILE_ONLY, warnings)
    entries: Any = kept.get("entries")
    if isinstance(entries, dict):
        kept["entries"] = {
            name: _without(
                f"plugins.entries.{name}", cast("dict[str, Any]", entry), FILE_ONLY_OF_ENTRY, warnings
            )
            if isinstance(entry, dict)
            else entry
            for name, entry in cast("dict[str, Any]", entries).items()
        }
    return {**overrides, "plugins": kept}


def without_secrets(from_file: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The file's settings without the secrets of a service that the host has replaced by another one."""
    if "url" not in _at(SERVICE, overrides):
        return from_file
    return _left_out(from_file, SERVICE)


def _at(names: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    found: Any = values
    for name in names:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _left_out(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The values, with the secrets gone from the table that these names lead to."""
    if not names:
        return {name: value for name, value in values.items() if name not in SECRETS_OF_SERVICE}
    inside: Any = values.get(names[0])
    if not isinstance(inside, dict):
        return values
    return {**values, names[0]: _left_out(cast("dict[str, Any]", inside), names[1:])}


def _without(
    where: str, given: dict[str, Any], names: tuple[str, ...], warnings: list[str]
) -> dict[str, Any]:
    prefix = f"{where}." if where else ""
    warnings += [
        f"{prefix}{name} is heeded in the configuration file only" for name in given if name in names
    ]
    return {name: value for name, value in given.items() if name not in names}
