"""Writes into the configuration file which engine is selected, and leaves everything else as it is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec

_HEADER = re.compile(r"^\s*\[")
_SLOTS = re.compile(r"^\s*\[\s*plugins\s*\.\s*slots\s*\]\s*(#.*)?$")
_KEY = re.compile(r"^(\s*)contextEngine\s*=.*$")


class FileNotChanged(Exception):
    """Raised when the file has to be changed by hand; the text says how."""


def select(file: Path, engine_id: str) -> None:
    """Make `plugins.slots.contextEngine` of the file this engine, making the file where there is none.

    Raises:
        FileNotChanged: the file is no TOML, or written in a way that only its author can change.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    line = f"contextEngine = {msgspec.json.encode(engine_id).decode()}"
    by_hand = f"write it into {file} yourself:\n\n[plugins.slots]\n{line}"
    try:
        before: dict[str, Any] = tomllib.loads(text)
        changed = _changed(text, line)
        after: dict[str, Any] = tomllib.loads(changed)
    except ValueError as error:
        raise FileNotChanged(f"the file cannot be changed ({error}); {by_hand}") from None
    if after != _expected(before, engine_id):
        raise FileNotChanged(f"the file has its slots in a place of its own; {by_hand}")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(changed, encoding="utf-8")
    beside.replace(file)


def _changed(text: str, line: str) -> str:
    lines = text.split("\n")
    start = next((i for i, one in enumerate(lines) if _SLOTS.match(one)), None)
    if start is None:
        return f"{text.rstrip()}\n\n[plugins.slots]\n{line}\n".lstrip()
    end = next((i for i in range(start + 1, len(lines)) if _HEADER.match(lines[i])), len(lines))
    for i in range(start + 1, end):
        if _KEY.match(lines[i]):
            lines[i] = line
            break
    else:
        lines.insert(start + 1, line)
    return "\n".join(lines)


def _expected(before: dict[str, Any], engine_id: str) -> dict[str, Any]:
    plugins = cast("dict[str, Any]", before.get("plugins", {}))
    slots = cast("dict[str, Any]", plugins.get("slots", {}))
    return {**before, "plugins": {**plugins, "slots": {**slots, "contextEngine": engine_id}}}
