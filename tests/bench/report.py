"""Medians over rounds, ratios inside rounds, and the targets they are held against."""

from statistics import median
from typing import NamedTuple

from tests.bench.measures import Round
from tests.bench.servers import FLOOR, NODE

CORE, RAW, SERVE = "sidecar core", "sidecar core, Raw", "context-sidecar serve"


class Goal(NamedTuple):
    """A ratio that should hold: what was shown to be possible, and what must not be missed."""

    server: str
    metric: str
    base: str
    ambitious: float
    bound: float


GOALS: dict[str, list[Goal]] = {
    "start-up": [Goal(SERVE, "cpu ms", NODE, 0.5, 1.5)],
    "small": [
        Goal(CORE, "p50 us, 1", FLOOR, 1.9, 2.5),
        Goal(CORE, "p50 us, 1", NODE, 0.42, 0.6),
        Goal(CORE, "cpu us, 256", NODE, 0.13, 0.25),
    ],
    "large": [
        Goal(CORE, "cpu ms/MB", NODE, 0.35, 0.5),
        Goal(RAW, "cpu ms/MB", NODE, 0.2, 0.5),
        Goal(CORE, "peak MB", NODE, 0.45, 0.6),
    ],
    "ingest": [
        Goal(SERVE, "cpu us, 256", NODE, 0.1, 0.2),
        Goal(SERVE, "p50 us, 1", NODE, 1.0, 1.3),
    ],
}


def medians(rounds: list[Round]) -> Round:
    """For each server and metric the median over the rounds."""
    first = rounds[0]
    return {
        server: {metric: median(turn[server][metric] for turn in rounds) for metric in first[server]}
        for server in sorted(first)
    }


def ratio(rounds: list[Round], server: str, metric: str, base: str) -> float:
    """The median of the ratios inside the rounds."""
    return median(turn[server][metric] / turn[base][metric] for turn in rounds)


def table(rounds: list[Round]) -> str:
    """A Markdown table: the medians, with the ratio to Node behind each."""
    values = medians(rounds)
    metrics = list(next(iter(values.values())))
    lines = ["| server | " + " | ".join(metrics) + " |", "| --- |" + " ---: |" * len(metrics)]
    for server, found in values.items():
        cells = [
            f"{_short(found[metric])} ({_short(ratio(rounds, server, metric, NODE))}x)" for metric in metrics
        ]
        lines.append(f"| {server} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdicts(name: str, rounds: list[Round]) -> list[dict[str, object]]:
    """How the goals of a measure were met."""
    found: list[dict[str, object]] = []
    for goal in GOALS[name]:
        value = ratio(rounds, goal.server, goal.metric, goal.base)
        met = "ambitious" if value <= goal.ambitious else "met" if value <= goal.bound else "MISSED"
        found.append({**goal._asdict(), "ratio": round(value, 3), "verdict": met})
    return found


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
