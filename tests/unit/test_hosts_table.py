"""The README says what each host can drive, and a test inside of the real host shows each of these things."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS = ("assemble", "compact", "tools", "subagents")
FORTY = "test_forty_turns_past_the_budget_and_a_sidecar_that_is_killed"
SUMMARIES = "test_the_agents_own_model_writes_summaries_where_that_is_wanted"
AGENT_TOOL = "test_an_agent_that_is_a_tool_has_a_session_of_its_own"
SUBAGENT = "test_a_subagent_has_a_session_of_its_own"
BY_HAND = "compaction by hand is answered, and its summary takes the place of old turns"
PI_BY_HAND = "a compaction by hand is the sidecar's, and its summary takes the place of old turns"
PASSED_ON = "what the model gets is what the sidecar answered"
OPENCODE_FORTY = (
    "forty turns past the budget, with a sidecar that is killed and an opencode that is started again"
)
PROGRAMS = "tests/e2e/test_gateway_programs.py"
SIXTY = "test_sixty_turns_past_the_window_stay_valid_fit_and_keep_their_prefix"

Shown = tuple[str, str] | None
"""The file of a test, and its name or how that begins."""

HOSTS: dict[str, tuple[Shown, Shown, Shown, Shown]] = {
    "OpenClaw": (
        ("clients/openclaw/tests/host/openclaw.test.ts", PASSED_ON),
        ("clients/openclaw/tests/host/openclaw.test.ts", BY_HAND),
        ("clients/openclaw/tests/host/openclaw.test.ts", "the recall tool finds what was said earlier"),
        ("clients/openclaw/tests/host/subagents.test.ts", "a subagent has a history of its own"),
    ),
    "pi": (
        ("clients/pi/tests/host/pi.test.ts", PASSED_ON),
        ("clients/pi/tests/host/pi.test.ts", PI_BY_HAND),
        ("clients/pi/tests/host/pi.test.ts", "the recall tool finds what was said earlier"),
        None,
    ),
    "opencode": (
        ("clients/opencode/tests/host/opencode.test.ts", OPENCODE_FORTY),
        None,
        ("clients/opencode/tests/host/opencode.test.ts", OPENCODE_FORTY),
        ("clients/opencode/tests/host/opencode.test.ts", "a subagent has a session of its own"),
    ),
    "LangChain, LangGraph": (
        ("tests/frameworks/test_langchain.py", FORTY),
        ("tests/frameworks/test_langchain.py", SUMMARIES),
        ("tests/frameworks/test_langchain.py", FORTY),
        ("tests/frameworks/test_langchain.py", SUBAGENT),
    ),
    "Pydantic AI": (
        ("tests/frameworks/test_pydantic_ai.py", FORTY),
        ("tests/frameworks/test_pydantic_ai.py", SUMMARIES),
        ("tests/frameworks/test_pydantic_ai.py", FORTY),
        ("tests/frameworks/test_pydantic_ai.py", SUBAGENT),
    ),
    "OpenAI Agents SDK": (
        ("tests/frameworks/test_openai_agents.py", FORTY),
        ("tests/frameworks/test_openai_agents.py", SUMMARIES),
        ("tests/frameworks/test_openai_agents.py", FORTY),
        ("tests/frameworks/test_openai_agents.py", "test_an_agent_that_is_a_tool_has_sessions_of_its_own"),
    ),
    "Microsoft Agent Framework": (
        ("tests/frameworks/test_agent_framework.py", FORTY),
        ("tests/frameworks/test_agent_framework.py", SUMMARIES),
        ("tests/frameworks/test_agent_framework.py", FORTY),
        ("tests/frameworks/test_agent_framework.py", AGENT_TOOL),
    ),
    "Claude Code, Codex, by the gateway": (
        (PROGRAMS, SIXTY),
        (PROGRAMS, "test_codex_goes_on_from_the_engines_compaction"),
        None,
        None,
    ),
}


def table() -> str:
    """The table as the README has to show it."""
    lines = [f"| host | {' | '.join(COLUMNS)} |", f"| --- |{' :-: |' * len(COLUMNS)}"]
    for host, shown in HOSTS.items():
        lines.append(f"| {host} | {' | '.join('–' if one is None else 'yes' for one in shown)} |")
    return "\n".join(lines)


def test_each_yes_of_the_table_is_shown_by_a_test() -> None:
    for host, shown in HOSTS.items():
        for column, one in zip(COLUMNS, shown, strict=True):
            if one is None:
                continue
            file, name = one
            page = (ROOT / file).read_text(encoding="utf-8")
            pattern = rf"(?:def |test\(\"){re.escape(name)}"
            assert re.search(pattern, page), f"{host}, {column}: {file} has no test {name!r}"


def test_the_table_of_hosts_is_in_the_readme() -> None:
    assert table() in (ROOT / "README.md").read_text(encoding="utf-8"), f"the README needs this:\n{table()}"
