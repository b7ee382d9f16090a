"""The shared vectors for terse tags hold for this implementation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.client import TerseStripper
from sidecar.messages.terse_tags import strip_tags, summaries

FOLDER = Path(__file__).parents[2] / "spec" / "vectors" / "terse"
FILES = sorted(FOLDER.glob("*.json"))
TEXTS = [file for file in FILES if not file.stem.startswith("stream-")]
STREAMS = [file for file in FILES if file.stem.startswith("stream-")]


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


def test_there_are_vectors() -> None:
    assert len(TEXTS) > 20 and len(STREAMS) > 5


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.stem)
def test_a_text_is_shown_and_summed_up_as_its_vector_says(file: Path) -> None:
    case = read(file)
    assert strip_tags(case["text"]) == case["shown"]
    assert summaries(case["text"]) == case["summaries"]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.stem)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_text_in_pieces_is_shown_as_its_vector_says(file: Path, size: int) -> None:
    case, stripper = read(file), TerseStripper()
    text = case["text"]
    shown = [stripper.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(shown) + stripper.close() == case["shown"]


@pytest.mark.parametrize("file", STREAMS, ids=lambda file: file.stem)
def test_a_stream_returns_the_output_of_its_vector(file: Path) -> None:
    case, stripper = read(file), TerseStripper()
    assert [stripper.feed(chunk) for chunk in case["chunks"]] == case["shown"]
    assert stripper.close() == case["rest"]


@pytest.mark.parametrize("file", STREAMS, ids=lambda file: file.stem)
def test_a_stream_is_shown_as_its_whole_text(file: Path) -> None:
    case = read(file)
    assert "".join(case["shown"]) + case["rest"] == strip_tags("".join(case["chunks"]))
