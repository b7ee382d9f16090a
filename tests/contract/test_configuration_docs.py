"""Every setting is documented, with the default that is in force."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from sidecar.engines.settings import (
    DefaultSettings,
    LosslessSettings,
    RecallSettings,
    SlidingWindowSettings,
    TerseSettings,
)
from sidecar.memory.episodes import EpisodesSettings
from sidecar.memory.sources.facts import FactsSettings
from sidecar.memory.sources.history import HistorySettings
from sidecar.memory.sources.http import HttpSettings
from sidecar.memory.sources.workspace import WorkspaceSettings
from sidecar.server.configuration import resolve
from sidecar.server.configuration import resolve as configuration
from sidecar.server.configuration.model import Configuration, Entry

PAGE = (Path(__file__).parents[2] / "spec" / "server" / "configuration.md").read_text(encoding="utf-8")
ROWS = {m[1]: m[2] for m in re.finditer(r"^\| `([^`]+)` \|[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)}


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from settings(kind, f"{prefix}{name}.")
        elif name == "entries":
            yield from settings(Entry, f"{prefix}{name}.<id>.")
        else:
            yield prefix + name, field.get_default(call_default_factory=True)


ENGINES = (DefaultSettings, TerseSettings, RecallSettings, LosslessSettings, SlidingWindowSettings)
SOURCES = {
    "workspace": WorkspaceSettings,
    "history": HistorySettings,
    "facts": FactsSettings,
    "http": HttpSettings,
}
ALL = [
    *settings(Configuration),
    *(each for model in (*ENGINES, EpisodesSettings) for each in settings(model)),
    *(each for name, model in SOURCES.items() for each in settings(model, f"plugins.entries.{name}.config.")),
]


def test_every_setting_is_in_the_table_with_its_default() -> None:
    for key, default in ALL:
        assert key in ROWS, f"spec/server/configuration.md lacks {key}"
        if isinstance(default, bool | int | float):
            assert ROWS[key].strip(" `") == str(default).lower(), key


def test_the_table_names_no_setting_that_there_is_not() -> None:
    known = {key for key, _ in ALL} | {"CONTEXT_SIDECAR_STATE_DIR", "CONTEXT_SIDECAR_CONFIG"}
    assert {row for row in ROWS if "." in row} <= known


@pytest.mark.parametrize(
    "variable",
    [
        resolve.ENV_STATE_DIR,
        resolve.ENV_CONFIG,
        configuration.ENV_ENGINE,
        configuration.ENV_MODEL_KEY,
        resolve.ENV_SECRET,
        resolve.ENV_LEVEL,
        resolve.ENV_FORMAT,
    ],
)
def test_an_environment_variable_is_documented(variable: str) -> None:
    assert f"`{variable}`" in PAGE


def test_the_example_is_a_valid_configuration() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    parsed = Configuration.model_validate(tomllib.loads(example[1]))
    assert list(parsed.unknown_keys()) == []
