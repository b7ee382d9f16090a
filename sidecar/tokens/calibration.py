"""Calibrates our token counts by the usage that a provider reports."""

from __future__ import annotations

from itertools import combinations

import msgspec

LOWEST_FACTOR, HIGHEST_FACTOR = 0.5, 2.5
FIRST_TOLERANCE, TOLERANCE = 0.04, 0.08
"""A factor stays while the evidence is within this share of it, because a new one breaks prompt caches."""
KEPT_OBSERVATIONS = 16
LEAST_DISTANCE = 400
LEAST_RELATIVE_DISTANCE = 0.33
"""Minimum differences between two contexts, in tokens and as a share, for them to count as evidence."""
LEAST_SLOPES = 5
WIDEST_SPREAD = 0.25
"""Evidence whose spread exceeds this share is ignored."""
REPORTS_TO_SWITCH = 3
"""Consecutive reports after which another model takes over; an occasional helper model does not."""
KEPT_MODELS = 8


class Evidence(msgspec.Struct, array_like=True):
    """Reports about one model: pairs of our count and the provider's, newest last."""

    observations: list[tuple[int, int]] = []
    stated: float = 0.0
    """The factor implied by the host's own count; 0 if it sent none."""


class CalibrationState(msgspec.Struct, array_like=True):
    """The state stored between runs of a server."""

    counter: str
    factor: float = 1.0
    version: int = 0
    model: str = ""
    streak: int = 0
    """Consecutive reports about a model other than `model`."""
    evidence: dict[str, Evidence] = {}


class Calibration:
    """The factor between our counts and a provider's, for one session and the model that it mainly uses.

    A provider counts more than the sidecar sees: it reports `overhead + factor * count`, where the overhead
    is the host's system prompt and tool schemas. The factor is the slope between counts and reports, so the
    overhead does not affect it.
    """

    def __init__(self, counter: str, state: CalibrationState | None = None) -> None:
        """Start at factor 1, or continue from `state` if it was made with the same counter."""
        if state is None:
            state = CalibrationState(counter)
        elif state.counter != counter or not LOWEST_FACTOR <= state.factor <= HIGHEST_FACTOR:
            state = CalibrationState(counter, version=state.version + 1)
        self._state = state

    @classmethod
    def from_bytes(cls, counter: str, kept: bytes) -> Calibration:
        """The calibration from `to_bytes`; a new one if `kept` is empty or unreadable."""
        try:
            return cls(counter, msgspec.msgpack.decode(kept, type=CalibrationState))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return cls(counter)

    def to_bytes(self) -> bytes:
        """The state for `from_bytes`, at most a few hundred bytes."""
        return msgspec.msgpack.encode(self._state)

    @property
    def factor(self) -> float:
        """The factor for our counts; 1 until there is solid evidence."""
        return self._state.factor

    @property
    def version(self) -> int:
        """Rises whenever `factor` changes; callers then raise the context epoch."""
        return self._state.version

    def tokens(self, count: int) -> int:
        """A count in the provider's tokens, rounded up."""
        return -int(-count * self._state.factor // 1)

    def uncalibrated(self, tokens: int) -> int:
        """Our original count, given the result of `tokens`."""
        return round(tokens / self._state.factor)

    def observe(self, model: str, counted: int, reported: int) -> bool:
        """Record that a context of `counted` tokens by our count cost `reported` input tokens.

        `counted` is the count before calibration (`uncalibrated`), or each factor would undo the last one.
        Returns whether the factor changed.
        """
        if counted <= 0 or reported <= 0:
            return False
        evidence = self._evidence(model)
        evidence.observations = [*evidence.observations, (counted, reported)][-KEPT_OBSERVATIONS:]
        return self._reconsider(model)

    def trust(self, model: str, counted: int, stated: int) -> bool:
        """Record the host's own count of exactly what we counted; it overrides all usage reports.

        Returns whether the factor changed.
        """
        if counted < LEAST_DISTANCE or stated <= 0:
            return False
        self._evidence(model).stated = stated / counted
        return self._reconsider(model)

    def overhead(self) -> int:
        """The tokens in the latest report that our count does not explain; 0 if there is no report."""
        evidence = self._state.evidence.get(self._state.model)
        if evidence is None or not evidence.observations:
            return 0
        counted, reported = evidence.observations[-1]
        return max(0, reported - self.tokens(counted))

    def _evidence(self, model: str) -> Evidence:
        known = self._state.evidence
        evidence = known.pop(model, None) or Evidence()
        known[model] = evidence
        while len(known) > KEPT_MODELS:
            del known[next(iter(known))]
        return evidence

    def _reconsider(self, model: str) -> bool:
        state = self._state
        state.streak = 0 if model == state.model else state.streak + 1
        if state.streak and state.model and state.streak < REPORTS_TO_SWITCH:
            return False
        state.model, state.streak = model, 0
        factor, doubt = _factor(state.evidence[model])
        tolerance = FIRST_TOLERANCE if state.factor == 1 else TOLERANCE
        if not factor or abs(factor / state.factor - 1) <= max(tolerance, doubt):
            return False
        state.factor = factor
        state.version += 1
        return True


def _factor(evidence: Evidence) -> tuple[float, float]:
    """The factor that the evidence supports, 0 if it is too thin, and the factor's uncertainty as a share."""
    factor, doubt = (evidence.stated, 0.0) if evidence.stated else _median_slope(evidence.observations)
    return (round(min(max(factor, LOWEST_FACTOR), HIGHEST_FACTOR), 2), doubt) if factor > 0 else (0.0, 0.0)


def _median_slope(observations: list[tuple[int, int]]) -> tuple[float, float]:
    """The median slope of reported over counted tokens, and its relative spread; zeros if unclear."""
    slopes = sorted(
        (reported - reported_before) / (counted - counted_before)
        for (counted_before, reported_before), (counted, reported) in combinations(observations, 2)
        if abs(counted - counted_before) >= max(LEAST_DISTANCE, LEAST_RELATIVE_DISTANCE * counted)
    )
    if len(slopes) < LEAST_SLOPES:
        return 0.0, 0.0
    middle = slopes[len(slopes) // 2]
    spread = slopes[-1 - len(slopes) // 4] - slopes[len(slopes) // 4]
    return (middle, spread / middle) if middle > 0 and spread <= WIDEST_SPREAD * middle else (0.0, 0.0)
