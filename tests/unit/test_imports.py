"""Modules can be imported in any order, and files of one part do not import each other in circles."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "sidecar"
PARTS = sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file())
CLOSED = {"conformance", "engine", "engines", "lsp", "messages", "rpc", "semantic", "store"}
"""Parts that still have a circle."""
IMPORT_EACH = """
import importlib, pkgutil, sys

part = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(part.__path__, sys.argv[1] + ".")]
for name in [sys.argv[1], *(name for name in names if not name.endswith("__main__"))]:
    for known in [known for known in sys.modules if known.partition(".")[0] == "sidecar"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except ImportError as error:
        # Agent frameworks are in an environment of their own, whose tests import these modules.
        if error.name not in ("agent_framework", "agents", "langchain", "pydantic_ai"):
            print(name, error)
"""


@pytest.mark.parametrize("part", PARTS)
def test_every_module_can_be_the_first_one_that_is_imported(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, f"sidecar.{part}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def imports_of(part: str) -> dict[str, set[str]]:
    """Which files of a part import which, for their annotations or inside of functions too."""
    files = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / part).rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
        found[name] = (imported & files.keys()) - {name}
    return found


@pytest.mark.parametrize("part", [part for part in PARTS if part not in CLOSED])
def test_files_of_a_part_do_not_import_each_other_in_a_circle(part: str) -> None:
    try:
        TopologicalSorter(imports_of(part)).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
