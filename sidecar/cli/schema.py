"""`context-sidecar schema`: write or check the files generated from the protocol's types."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import sidecar
from sidecar.cli.failures import FAILURE, OK


@click.command("schema")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is out of date.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Root folder of the files (default: the repository, if this runs from one).",
)
def command(check: bool, out: Path | None) -> int:
    """Write the schema and the other files generated from the protocol's types.

    Outside a repository and without --out, print the JSON Schema to standard output.
    """
    root = out or _repository()
    if root is None:
        if check:
            raise click.UsageError("there is no repository to check; name one with --out")
        from sidecar.codegen.model import read_protocol
        from sidecar.codegen.schema import emit_schema

        sys.stdout.write(emit_schema(read_protocol()))
        return OK
    from sidecar.codegen.generate import generate

    drifted = generate(root, check)
    for path in drifted:
        print(f"{path}: {'differs; run `context-sidecar schema`' if check else 'written'}", file=sys.stderr)
    return FAILURE if check and drifted else OK


def _repository() -> Path | None:
    """The root of the repository that contains this package, if any."""
    root = Path(sidecar.__file__).resolve().parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "spec").is_dir() else None
