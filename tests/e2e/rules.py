"""Checks an assembled context against every rule that holds for all of them."""

from collections.abc import Collection

from tests.e2e.agent_host import Assembled
from tests.e2e.judge import exact_tokens, is_synthetic, problems

ESTIMATE_MAY_BE_OFF = 1.02
"""An exact count is over the budget by no more than this factor."""


def broken_rules(
    dialect: str, budget: int, sources: Collection[bytes], answer: Assembled, before: Assembled | None = None
) -> list[str]:
    """What is wrong with an answer; `before` is the one that the session got before it."""
    wrong = problems(dialect, answer.messages)
    if answer.tokens > budget:
        wrong.append(f"{answer.tokens} tokens are over the budget of {budget}")
    if exact_tokens(answer.messages) > budget * ESTIMATE_MAY_BE_OFF:
        wrong.append(f"exactly counted, {exact_tokens(answer.messages)} tokens are over {budget}")
    known = set(sources)
    for raw, message in zip(answer.raw, answer.messages, strict=True):
        if raw not in known and not is_synthetic(message):
            wrong.append(f"neither marked nor byte for byte: {raw[:200]!r}")
    parts = answer.result["composition"]
    if sum(part["tokens"] for part in parts) != answer.tokens:
        wrong.append(f"the tokens of {parts} do not sum to {answer.tokens}")
    if sum(part["messageCount"] for part in parts) != len(answer.raw):
        wrong.append(f"the counts of {parts} do not sum to {len(answer.raw)}")
    stable = answer.result["stablePrefix"]
    if not (0 <= stable["messageCount"] <= len(answer.raw) and stable["tokens"] <= answer.tokens):
        wrong.append(f"{stable} is no prefix of the answer")
    return wrong + ([] if before is None else _broken_prefix(before, answer))


def _broken_prefix(before: Assembled, answer: Assembled) -> list[str]:
    extends = answer.raw[: len(before.raw)] == before.raw
    if answer.epoch < before.epoch:
        return [f"the epoch fell from {before.epoch} to {answer.epoch}"]
    if answer.epoch == before.epoch and not extends:
        return ["the same epoch, but the answer does not start with the one before"]
    return []
