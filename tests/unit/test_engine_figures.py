"""Statistics of engine calls."""

from sidecar.server.engines.statistics import REMEMBERED, Figures


def test_calls_and_failures_are_counted_by_method() -> None:
    figures = Figures()
    for milliseconds in range(1, 101):
        figures.of("b").took(milliseconds / 1000, failed=milliseconds > 90)
    figures.of("a").took(1, failed=False)
    assert list(figures.all()) == ["a", "b"]
    known = figures.of("b")
    assert (known.count, known.errors) == (100, 10)
    assert 50 <= known.percentile(0.5) <= 52 and 95 <= known.percentile(0.95) <= 97
    assert "100 calls, 10 failed" in known.described()


def test_percentiles_are_those_of_the_newest_calls() -> None:
    known = Figures().of("a")
    assert known.percentile(0.95) == 0
    for _ in range(REMEMBERED):
        known.took(9, failed=False)
    for _ in range(REMEMBERED):
        known.took(0.001, failed=False)
    assert known.percentile(1) == 1 and known.count == 2 * REMEMBERED


def test_tokens_are_reported_per_answer() -> None:
    known = Figures().of("a")
    known.took(0.001, failed=False)
    known.took(0.001, failed=False)
    known.tokens += 30
    assert "15 tokens each" in known.described()
