"""`context-sidecar engines new`: writes the package of a new engine."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

from sidecar.cli.engines.templates import FILES
from sidecar.cli.failures import CommandFailed
from sidecar.engine.sources import BUILT_IN

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*")


@click.command("new")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Folder in which the package's own folder is made (default: this one).",
)
def new(name: str, into: Path) -> int:
    """Write the package of an engine NAME, such as `my_engine`, which works at once."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise CommandFailed(f"{name!r} is no name for a package: use letters, digits, and _ between words")
    words = re.split(r"[_-]", name.lower())
    if "-".join(words) in BUILT_IN:
        raise CommandFailed(f"there is a built-in engine {name!r}; choose another name")
    values = {
        "MODULE": "_".join(words),
        "ID": "-".join(words),
        "CLASS": "".join(word.capitalize() for word in words),
        "TITLE": " ".join(words).capitalize(),
    }
    folder = into / values["MODULE"]
    if folder.exists():
        raise CommandFailed(f"{folder} is there already; choose another name, or --into another folder")
    for path, text in FILES.items():
        file = folder / _filled(path, values)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_filled(text, values), encoding="utf-8")
    click.echo(f"wrote {folder}; now:")
    click.echo(f"  context-sidecar engines link {folder}")
    click.echo(f"  context-sidecar engines use {values['ID']}")
    click.echo("  context-sidecar doctor")
    return 0


def _filled(text: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text
