"""`context-sidecar engines install` and `uninstall`: packages in the sidecar's own environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from sidecar.cli.engines.choosing import reset_slot
from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, common_options

_LIST = """
import json
from sidecar.engine.sources import installed
print(json.dumps([[found.id, found.source] for found in installed()]))
"""


@click.command("install", context_settings={"ignore_unknown_options": True})
@click.argument("package")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@common_options
def install(common: Common, package: str, options: tuple[str, ...]) -> int:
    """Install PACKAGE, by its name or its folder; OPTIONS go to the installer as they are."""
    del common
    before = _installed()
    _run([*installer("install"), *options, package])
    now = _installed()
    new = sorted(set(now) - set(before))
    if not new:
        known = sorted(engine for engine, source in now.items() if source.split(" ")[0] == package)
        if not known:
            raise CommandFailed(f"{package} is installed, but registers no engine that was not there before")
        new = known
    click.echo(f"installed {', '.join(f'{name} ({now[name]})' for name in new)}")
    click.echo(f"`context-sidecar engines use {new[0]}` selects it, `engines check {new[0]}` checks it")
    return 0


@click.command("uninstall")
@click.argument("name", metavar="PACKAGE|ENGINE")
@common_options
def uninstall(common: Common, name: str) -> int:
    """Remove a PACKAGE, or the one that an ENGINE comes from, out of the sidecar's environment."""
    before = _installed()
    package = before[name].rpartition(" ")[0] if name in before else name
    if _same(package, "context-sidecar"):
        raise CommandFailed(f"{name} comes with the sidecar")
    command = installer("uninstall")
    _run([*command, package])
    gone = sorted(set(before) - set(_installed()))
    click.echo(f"removed {package}" + (f" with {', '.join(gone)}" if gone else ""))
    reset_slot(common, gone)
    return 0


def installer(task: str) -> list[str]:
    """The command that installs into, or uninstalls from, the environment of this very process.

    Raises:
        CommandFailed: there is none.
    """
    pipx = shutil.which("pipx")
    if pipx and Path(sys.prefix).parent.name == "venvs" and "pipx" in Path(sys.prefix).parts:
        verb = "inject" if task == "install" else "uninject"
        return [pipx, verb, Path(sys.prefix).name]
    if find_spec("pip") is not None:
        quiet = ["--disable-pip-version-check", *(["--yes"] if task == "uninstall" else [])]
        return [sys.executable, "-m", "pip", task, *quiet]
    if uv := shutil.which("uv"):
        return [uv, "pip", task, "--python", sys.executable]
    raise CommandFailed(
        f"neither pip nor uv is there to {task} into {sys.prefix}; {task} the package there by your own means"
    )


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise CommandFailed(f"`{' '.join(command)}` failed with exit code {done.returncode}")


def _installed() -> dict[str, str]:
    """Engine ids with their packages, as a fresh process sees them."""
    done = subprocess.run([sys.executable, "-c", _LIST], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _same(one: str, other: str) -> bool:
    return one.lower().replace("_", "-") == other
