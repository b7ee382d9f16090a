"""The core alone, without a context engine, keeps the rules of framing, bad input and lifecycle.

`tests/conformance/test_own_server.py` runs the same suite on the whole server.
"""

import asyncio
from contextlib import nullcontext

from sidecar.conformance.kit import run_suite
from sidecar.conformance.server import SERVER_SUITE, Server
from tests.wire.conftest import ECHO

RULES = ("framing/", "bad input/", "lifecycle/", "flow/cancelling_nothing")
ABOUT_ENGINES = {
    "framing/body_over_the_limit",
    "framing/line_over_the_limit",
    "bad input/params_that_are_not_objects",
    "lifecycle/after_a_failed_initialize",
}
"""Rules about methods and settings that the core lacks."""


def test_the_core_keeps_the_rules_that_are_not_about_engines() -> None:
    server = Server(ECHO)
    checks = [check for check in SERVER_SUITE if check.name.startswith(RULES) and not check.needs]
    names = [check.name for check in checks if check.name not in ABOUT_ENGINES]
    try:
        report = asyncio.run(
            run_suite(SERVER_SUITE, lambda: nullcontext(server), subject="core", patterns=names)
        )
    finally:
        server.close()
    wrong = [(result.name, result.message) for result in report.results if result.outcome != "passed"]
    assert wrong == []
    assert report.counts.passed == len(names) > 30
