"""What to recall for a prompt."""

import pytest

from sidecar.recall.situations import situation


@pytest.mark.parametrize(
    "prompt", ["yes", "Yes, go on!", "ok, thanks", "continue", "please do that", "好的，继续", "", "…"]
)
def test_a_prompt_that_only_goes_on_calls_for_nothing(prompt: str) -> None:
    assert situation(prompt, ["I changed src/app.py"]).question == ""


@pytest.mark.parametrize(
    "prompt", ["What is the wifi password?", "我曾经推荐过哪些画家？", "fix the login bug"]
)
def test_a_prompt_that_is_about_something_calls_for_it(prompt: str) -> None:
    asked = situation(prompt, [])
    assert prompt in asked.question
    assert asked.terms


def test_a_short_prompt_is_read_with_the_names_said_just_before() -> None:
    asked = situation("fix login", ["old.py", "I looked at src/auth/session.py and AuthGuard"])
    assert "src/auth/session.py" in asked.question
    assert "AuthGuard" in asked.question


def test_a_word_with_a_hyphen_is_not_a_name() -> None:
    said = "It taught me self-acceptance; see test-themes.ts and user_names-2 in packages/tui-kit"
    asked = situation("fix login", [said])
    assert asked.question.split() == ["fix", "login", "test-themes.ts", "user_names-2", "packages/tui-kit"]


def test_a_long_prompt_stands_for_itself() -> None:
    prompt = "which database did we choose for the billing service in spring"
    assert situation(prompt, ["see src/auth/session.py"]).question == prompt


def test_both_ends_of_a_huge_prompt_are_examined() -> None:
    asked = situation("alphaword " + "filler " * 50_000 + "omegaword", [])
    assert "alphaword" in asked.question
    assert "omegaword" in asked.question
    assert len(asked.question) < 10_000
