import click
import pytest

from sidecar.cli.options import token_budget


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("32k", 32_000), ("128000", 128_000), ("1.5K", 1500), ("1m", 1_000_000), (" 7 ", 7)],
)
def test_a_budget_is_read(text: str, tokens: int) -> None:
    assert token_budget(text) == tokens


@pytest.mark.parametrize("text", ["", "0", "k", "-5", "32 thousand", "1e3", "0.0001k", "٣"])
def test_anything_else_is_not_a_budget(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no budget"):
        token_budget(text)
