"""Every engine that comes with the sidecar keeps the rules that the suite for engines checks."""

import asyncio
import sys
from pathlib import Path

import pytest

from sidecar.conformance.engine import EngineSubject, check_engine
from sidecar.engine.sources import BUILT_IN

ROOT = Path(__file__).parents[2]
SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")
WARNED = {"terse": ["assembling/goes_on_from_its_answer"]}
"""Checks that warn by design: a turn moves into the log of `terse` whenever another one comes."""


@pytest.mark.timeout(400)  # the whole suite on a busy machine
@pytest.mark.parametrize("engine", BUILT_IN)
def test_an_engine_of_our_own_keeps_the_rules(engine: str, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    subject = EngineSubject(engine, (*SERVE, "--config", str(config)), {"PYTHONPATH": str(ROOT)})
    report = asyncio.run(check_engine(subject))
    wrong = [(r.name, r.message) for r in report.results if r.outcome in ("failed", "error")]
    assert wrong == []
    assert [r.name for r in report.results if r.outcome == "warned"] == WARNED.get(engine, [])
    assert engine == "legacy" or not report.counts.undeclared
    assert report.subject == engine
