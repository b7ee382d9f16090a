"""Runs the suite for engines."""

from collections.abc import Callable, Collection

from sidecar.conformance.engine.subject import EngineSubject, serving
from sidecar.conformance.engine.suite import ENGINE_SUITE
from sidecar.conformance.report import CheckResult, Report
from sidecar.conformance.running import run_suite

LEGACY = "legacy"


async def check_engine(
    subject: EngineSubject,
    *,
    patterns: Collection[str] = (),
    told: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on an engine; what it declares decides which rules say something about it.

    Raises:
        ValueError: no check is chosen.
        SidecarError: the engine cannot be selected.
    """
    async with serving(subject) as provide:
        async with provide() as first:
            engine = first.engine
        plain = engine.id == LEGACY
        declared = [*([] if plain else ["stores", "budget"])]
        if engine.owns_compaction:
            declared.append("owns-compaction")
        return await run_suite(
            ENGINE_SUITE, provide, subject=engine.id, declared=declared, patterns=patterns, told=told
        )
