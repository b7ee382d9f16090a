"""Every check of the suite for engines catches an engine that breaks its rule."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from sidecar.conformance.engine import ENGINE_SUITE, Conversation, EngineSubject
from sidecar.conformance.engine.subject import serving
from sidecar.conformance.kit import CheckResult, run_check
from sidecar.engine.contract import ContextEngine
from tests.conformance.broken_engines import BROKEN, OF_SESSIONS, OF_THEMSELVES
from tests.conformance.lending_engine import LendingEngine

ROOT = Path(__file__).parents[2]
SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")
CHECKS = {check.name: check for check in ENGINE_SUITE}
LIMIT_S = 300

CAUGHT = {
    "declaring/names_itself": "HasNoName",
    "declaring/is_listed": "ServesUnderAnotherId",
    "declaring/is_healthy": "DoesNotStart",
    "ingesting/stores_a_message": "TakesNothingIn",
    "ingesting/stores_a_message_once": "TakesEverythingForNew",
    "ingesting/keeps_messages_as_they_came": "StoresNoResultsOfTools",
    "assembling/answers_an_empty_list": "GreetsWhereNothingWasSaid",
    "assembling/answers_a_session_never_seen": "ShowsNothingThatIsNotStored",
    "assembling/shows_what_fits": "StoresCapitals",
    "assembling/keeps_the_budget": "FailsWhereRoomIsScarce",
    "assembling/says_what_it_needs": "FailsWhereRoomIsScarce",
    "assembling/is_valid": "FailsWhereItHasToCut",
    "assembling/is_repeatable": "CountsItsAnswers",
    "assembling/goes_on_from_its_answer": "ShowsTheNewestTurnAlone",
    "assembling/knows_its_own_answer": "CountsItsAnswers",
    "assembling/keeps_sessions_apart": "TellsWhatOtherSessionsHold",
    "compacting/compacts_by_force": "DeclinesWithoutAWord",
    "compacting/loses_nothing": "StoresWhatItMakesOfTheHistory",
    "compacting/declines_with_a_reason": "TakesNothingToDoForAFailure",
    "compacting/says_when_the_host_cannot": "CompactsWhatItLeavesToTheHost",
    "lifecycle/stores_whole_turns": "KeepsADiaryAmongTheMessages",
    "lifecycle/predicts": "PromisesThatEverythingFits",
    "lifecycle/maintains": "FailsWhereNothingNeedsMaintenance",
    "lifecycle/resumes_after_dispose": "RemembersUntilItIsDisposedOf",
}
"""By check: the broken engine that it catches."""

CONFIGURATION = """\
[plugins]
onEngineFailure = "legacy"
[plugins.load]
paths = [{folder}]
[plugins.entries.{id}]
isolation = "{isolation}"
"""
"""Failures are covered up as far as a configuration can cover them up: the checks see them even so."""


def described(broken: str) -> str:
    """What is wrong with a broken engine, in words."""
    return " ".join(re.findall(r"[A-Z][a-z]*", broken)).lower()


class Results(NamedTuple):
    """What the checks say, by name."""

    broken: Mapping[str, CheckResult]
    sound: Mapping[str, CheckResult]


def _subject(kind: type[ContextEngine], folder: Path, isolation: str) -> EngineSubject:
    """A sidecar that serves the engine, in whatever folder it is started."""
    project = folder / kind.info.id
    project.mkdir()
    target = f"{kind.__module__}:{kind.__name__}"
    group = '[project.entry-points."context_sidecar.engines"]'
    (project / "pyproject.toml").write_text(f'[project]\nname = "x"\n{group}\n{kind.info.id} = "{target}"\n')
    config = folder / f"{kind.info.id}.toml"
    config.write_text(CONFIGURATION.format(folder=f"'{project}'", id=kind.info.id, isolation=isolation))
    return EngineSubject(kind.info.id, (*SERVE, "--config", str(config)), {"PYTHONPATH": str(ROOT)})


async def _all(folder: Path) -> Results:
    broken: dict[str, CheckResult] = {}
    sound: dict[str, CheckResult] = {}
    async with serving(_subject(LendingEngine, folder, "process")) as provide:

        async def of(name: str, check: str) -> CheckResult:
            @asynccontextmanager
            async def session() -> AsyncGenerator[Conversation]:
                async with provide() as talk:
                    yield Conversation(talk.client, f"{name}-{talk.session}")

            return await run_check(CHECKS[check], session)

        for check in CHECKS:
            sound[check] = await of("sound", check)
        for check, name in CAUGHT.items():
            if BROKEN[name] in OF_SESSIONS:
                broken[check] = await of(name, check)
    for check, name in CAUGHT.items():
        if BROKEN[name] in OF_THEMSELVES:
            async with serving(_subject(BROKEN[name], folder, "inline")) as provide:
                broken[check] = await run_check(CHECKS[check], provide)
    return Results(broken, sound)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of all checks, of few sidecars."""
    return asyncio.run(_all(tmp_path_factory.mktemp("engines")))


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("check", "broken"), CAUGHT.items(), ids=CAUGHT)
def test_a_check_catches_an_engine_that_breaks_its_rule(check: str, broken: str, results: Results) -> None:
    result = results.broken[check]
    caught = "failed" if result.level == "must" else "warned"
    assert result.outcome == caught, f"an engine that {described(broken)} is not caught"
    assert result.message
    assert "did not end within" not in result.message


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("check", CHECKS)
def test_a_check_lets_a_sound_engine_pass(check: str, results: Results) -> None:
    result = results.sound[check]
    assert result.outcome == "passed", f"{result.message}\n{result.trace}"


def test_every_check_of_engines_is_in_the_table() -> None:
    assert list(CAUGHT) == list(CHECKS)


def test_every_broken_engine_is_in_the_table() -> None:
    assert set(CAUGHT.values()) == set(BROKEN)
