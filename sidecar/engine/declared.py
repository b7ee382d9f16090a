"""Finds the engines that a folder declares, without importing its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUP = "context_sidecar.engines"
MOST_FILES = 200
"""Maximum Python files scanned per folder."""
_SKIPPED = ("test", "build", "dist", "docs", "conftest", "setup", ".", "_")


class NothingDeclared(Exception):
    """Raised when a folder has no engine; the text says what to do."""


def declared_engines(folder: Path) -> dict[str, str]:
    """The engines that a folder declares: id to `module:Class`.

    Taken from the entry points in its `pyproject.toml`, or else from classes with
    `info = EngineInfo(id="...")`.

    Raises:
        NothingDeclared: the folder is missing or has no engine, or its `pyproject.toml` is broken.
    """
    if not folder.is_dir():
        raise NothingDeclared(f"{folder} is not a folder: link it again from its new location, or unlink it")
    engines = _entry_points(folder / "pyproject.toml")
    if engines:
        return engines
    for place in import_folders(folder):
        for name, file in _modules(place):
            engines.update(_in_source(name, file))
    if not engines:
        raise NothingDeclared(
            f'{folder} declares no engine: add [project.entry-points."{GROUP}"] to its pyproject.toml'
        )
    return engines


def import_folders(folder: Path) -> list[Path]:
    """The folders from which a project's modules are imported."""
    source = folder / "src"
    return [source, folder] if source.is_dir() else [folder]


def _entry_points(file: Path) -> dict[str, str]:
    import tomllib

    try:
        project: Any = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        group: Any = project.get("entry-points", {}).get(GROUP, {})
        return {str(name): str(target) for name, target in group.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise NothingDeclared(f"{file} cannot be read: {error}") from error


def _modules(place: Path) -> Iterator[tuple[str, Path]]:
    """Dotted names and files of the modules importable from a folder."""
    seen = 0
    for top in sorted(place.iterdir()):
        if top.name.startswith(_SKIPPED):
            continue
        if top.is_file() and top.suffix == ".py":
            files = [top]
        elif (top / "__init__.py").is_file():
            files = sorted(top.rglob("*.py"))
        else:
            continue
        for file in files:
            seen += 1
            if seen > MOST_FILES:
                return
            parts = file.relative_to(place).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


def _in_source(module: str, file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text) if "EngineInfo" in text else None
    except (OSError, ValueError, SyntaxError):
        return {}
    if tree is None:
        return {}
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (engine_id := _declared_id(node)):
            found[engine_id] = f"{module}:{node.name}"
    return found


def _declared_id(node: ast.ClassDef) -> str | None:
    """The id in a class's `info = EngineInfo(id="...")`."""
    for statement in node.body:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if not isinstance(value, ast.Call) or not ast.unparse(value.func).endswith("EngineInfo"):
            continue
        for keyword in value.keywords:
            if keyword.arg == "id" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None
