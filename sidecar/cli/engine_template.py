"""`context-sidecar engines new`: create the package of a new engine."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

from sidecar.cli.failures import CommandFailed
from sidecar.engine.sources import BUILT_IN
from sidecar.private_files import create

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*")


@click.command("new", short_help="Create the package of a new engine that works at once.")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Folder in which to create the package's folder (default: the current one).",
)
def new(name: str, into: Path) -> int:
    """Create the package of a new engine NAME, such as `my_engine`, that works at once."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise CommandFailed(f"{name!r} is not a package name: use letters, digits, and _ between words")
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
        raise CommandFailed(f"{folder} exists already; choose another name, or --into another folder")
    for path, text in FILES.items():
        file = folder / _filled(path, values)
        with create(file) as out:
            out.write(_filled(text, values).encode())
    click.echo(f"wrote {folder}; now:")
    click.echo(f"  context-sidecar engines link {folder}")
    click.echo(f"  context-sidecar engines use {values['ID']}")
    click.echo("  context-sidecar doctor")
    return 0


def _filled(text: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@ID@"
version = "0.1.0"
description = "@TITLE@: a context engine for context-sidecar."
requires-python = ">=3.11"
# The sidecar itself is not listed: the engine is installed into its environment.
dependencies = ["pydantic>=2.11"]

# The name on the left is the id of the engine, the same as in its `info`.
[project.entry-points."context_sidecar.engines"]
@ID@ = "@MODULE@:@CLASS@"

[tool.hatch.build.targets.wheel]
packages = ["@MODULE@"]
"""

README = """\
# @TITLE@

A context engine for context-sidecar: `@MODULE@/engine.py` decides
what the model sees, `@MODULE@/settings.py` defines its settings.

```sh
context-sidecar engines link .          # use it in place
context-sidecar engines use @ID@
context-sidecar doctor                  # sends a turn through it
context-sidecar engines check @ID@      # runs the conformance checks
python -m pytest                        # the same, as a test
```

Changes take effect when the sidecar starts. `context-sidecar engines install .` installs the package for
good. Its settings go into the configuration file, under `[plugins.entries.@ID@.config]`.
"""

PACKAGE = '''\
"""@TITLE@: a context engine."""

from @MODULE@.engine import @CLASS@

__all__ = ["@CLASS@"]
'''

ENGINE = '''\
"""Decides what the model sees: the newest turns that fit."""

from @MODULE@.settings import @CLASS@Settings
from sidecar.engine import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Kept,
    Session,
    StoringEngine,
    Window,
    cut_window,
    keep_window,
    whole_window,
)

CUT = "cut"
"""Name of the saved state that holds the start of the window."""


class @CLASS@(StoringEngine):
    """Sends the messages that fit; the others stay stored, and the model finds them with `context_search`.

    The sidecar stores every message before it calls the engine, keeps answers within the budget, and keeps
    calls together with their results. An engine only decides what matters.
    """

    info = EngineInfo(id="@ID@", name="@TITLE@", version="0.1.0")
    settings_model = @CLASS@Settings

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """What the model should see now."""
        window = await keep_window(session.timeline, request.budget, await self._cut(session))
        if window.moved and window.cut:
            await session.save_state(CUT, window.cut.encode())
        note = self.host.settings(@CLASS@Settings).note
        return Assembly(items=_items(window), system_prompt_addition=note or None)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Make room: let the window begin later."""
        window = await whole_window(session.timeline, request.budget, await self._cut(session))
        share = self.host.settings(@CLASS@Settings).compactTo
        target = int(request.budget * share)
        if request.force:
            target = min(target, window.tokens // 2)
        if window.tokens <= target:
            reason = f"{window.tokens} tokens are within the target of {target}"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=window.tokens)
        smaller = await cut_window(session.timeline, window.entries, target, target)
        if smaller.cut is None or smaller.tokens >= window.tokens:
            reason = "only what the model needs next is left"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=window.tokens)
        await session.save_state(CUT, smaller.cut.encode())
        return CompactOutcome(
            compacted=True,
            first_kept_message_id=smaller.cut,
            tokens_before=window.tokens,
            tokens_after=smaller.tokens,
        )

    async def _cut(self, session: Session) -> str | None:
        """Id of the message at which the window begins."""
        kept = await session.state(CUT)
        return await session.timeline.resolve(kept.decode()) if kept else None


def _items(window: Window) -> list[Kept]:
    system = [Kept(entry, "system") for entry in window.system]
    return system + [Kept(entry) for entry in window.entries]
'''

SETTINGS = '''\
"""What can be configured under `[plugins.entries.@ID@.config]`."""

from pydantic import BaseModel, ConfigDict, Field


class @CLASS@Settings(BaseModel):
    """Settings of @CLASS@; an invalid value or an unknown key is refused with the name of the key."""

    model_config = ConfigDict(extra="forbid")

    compactTo: float = Field(default=0.5, gt=0.05, lt=1)
    """Share of the budget that a compaction leaves."""
    note: str = ""
    """A text for the system prompt."""
'''

TEST = '''\
"""Runs the engine in a real sidecar."""

import asyncio

from sidecar.conformance.engine import check_engine, engine_class
from sidecar.conformance.report import as_text


def test_the_engine_keeps_the_rules() -> None:
    report = asyncio.run(check_engine(engine_class("@MODULE@:@CLASS@")))
    assert report.ok, as_text(report, every_check=False)
'''

FILES = {
    "pyproject.toml": PROJECT,
    "README.md": README,
    "@MODULE@/__init__.py": PACKAGE,
    "@MODULE@/engine.py": ENGINE,
    "@MODULE@/settings.py": SETTINGS,
    "tests/test_@MODULE@.py": TEST,
}
"""Texts of the package by path; placeholders in both are replaced."""
