"""The charts over turns, drawn by leather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Literal, NamedTuple, Protocol, cast

from sidecar.cli.inspector.history import Costs, Turn
from sidecar.cli.lab.recording import Step

Theme = Literal["light", "dark"]
Points = Sequence[tuple[int, float]]


class _Chart(Protocol):
    """What is used of leather's charts, which have no types of their own."""

    def add_line(self, data: Points, *, name: str, stroke_color: str, width: int) -> None: ...
    def add_dots(self, data: Points, *, name: str, fill_color: str, radius: int) -> None: ...
    def add_x_scale(self, domain_min: float, domain_max: float) -> None: ...
    def add_y_scale(self, domain_min: float, domain_max: float) -> None: ...
    def add_x_axis(self, *, ticks: Sequence[int]) -> None: ...
    def add_y_axis(self, *, tick_formatter: Callable[[float, int, int], str]) -> None: ...
    def to_svg(self, *, width: int, height: int) -> str: ...


class Series(NamedTuple):
    """A line, or dots."""

    name: str
    points: Points
    colour: str
    is_dots: bool = False


# Apart in lightness as well as in hue, on either ground.
_COLOURS: dict[Theme, dict[str, str]] = {
    "light": {
        "ink": "#111827",
        "grey": "#6b7280",
        "blue": "#1d4ed8",
        "amber": "#d97706",
        "teal": "#0d9488",
        "pink": "#be185d",
    },
    "dark": {
        "ink": "#e5e7eb",
        "grey": "#9ca3af",
        "blue": "#60a5fa",
        "amber": "#fbbf24",
        "teal": "#5eead4",
        "pink": "#f472b6",
    },
}


def tokens(
    turns: Sequence[Turn],
    steps: Sequence[Step],
    budget: int,
    epochs: Sequence[int],
    theme: Theme,
    narrow: bool,
) -> str:
    """History, context and budget over turns, with a dot where the epoch rose.

    Where the provider reported them, also what the last call of each turn read from the cache.
    """
    colours = _COLOURS[theme]
    sent = {turn.number: turn.sent_tokens for turn in turns}
    series = [
        Series("history", [(turn.number, turn.history_tokens) for turn in turns], colours["grey"]),
        Series("sent", list(sent.items()), colours["blue"]),
        Series("budget", [(turn.number, budget) for turn in turns], colours["amber"]),
    ]
    usages = [
        (turn.number, [step.usage for step in steps[turn.first : turn.last + 1] if step.usage])
        for turn in turns
    ]
    if any(usage.read_tokens for _, calls in usages for usage in calls):
        points = [(number, calls[-1].read_tokens) for number, calls in usages if calls]
        series.append(Series("cache reads, as recorded", points, colours["teal"]))
    if epochs:
        dots = [(number, sent[number]) for number in epochs]
        series.append(Series("epoch rose", dots, colours["pink"], is_dots=True))
    return _drawn(series, theme, narrow, lambda value: f"{value:,.0f}")


def costs(turns: Sequence[Turn], summed: Sequence[Costs], theme: Theme, narrow: bool) -> str:
    """Dollars over turns, summed up from the first."""
    colours = _COLOURS[theme]
    numbers = [turn.number for turn in turns]
    ways = (
        ("everything", [cost.everything for cost in summed], "grey"),
        ("this engine", [cost.engine for cost in summed], "blue"),
        ("sliding window", [cost.window for cost in summed], "amber"),
    )
    series = [Series(name, list(zip(numbers, values, strict=True)), colours[at]) for name, values, at in ways]
    return _drawn(series, theme, narrow, lambda value: f"${value:,.6f}".rstrip("0").rstrip("."))


def _drawn(series: Sequence[Series], theme: Theme, narrow: bool, said: Callable[[float], str]) -> str:
    picture = cast("_Chart", import_module("leather").Chart())
    every = [point for one in series for point in one.points]
    for one in series:
        if one.is_dots:
            picture.add_dots(one.points, name=one.name, fill_color=one.colour, radius=4)
        else:
            picture.add_line(one.points, name=one.name, stroke_color=one.colour, width=2)
    first, last = min(x for x, _ in every), max(x for x, _ in every)
    picture.add_y_scale(0, 1.05 * max(y for _, y in every) or 1)
    picture.add_x_scale(first, max(last, first + 1))
    step = max(1, (last - first) // (4 if narrow else 8))
    picture.add_x_axis(ticks=list(range(first, max(last, first + 1) + 1, step)))

    def label(value: float, at: int, count: int) -> str:
        del at, count
        return said(float(value))

    picture.add_y_axis(tick_formatter=label)
    svg = picture.to_svg(width=400 if narrow else 760, height=300)
    # leather draws in greys of its own, which do not show on every ground.
    for grey in ("#666", "#9c9c9c", "#a8a8a8"):
        svg = svg.replace(f'"{grey}"', f'"{_COLOURS[theme]["ink"]}"')
    svg = svg.replace('"#f9f9f9"', '"none"').replace('"#eee"', '"#8884"')
    return svg.replace('font-family="Monaco"', 'font-family="sans-serif"')
