"""Learns from the usage that a provider reports how far our counts are off."""

from __future__ import annotations

from itertools import combinations

import msgspec

LOWEST_FACTOR, HIGHEST_FACTOR = 0.5, 2.5
FIRST_TOLERANCE, TOLERANCE = 0.04, 0.08
"""A factor stays while the evidence is within this share of it, since a new one breaks prompt caches."""
KEPT_OBSERVATIONS = 16
LEAST_DISTANCE = 400
LEAST_RELATIVE_DISTANCE = 0.33
"""Two contexts must differ by so many tokens, and by this share, to say anything about the factor."""
LEAST_SLOPES = 5
WIDEST_SPREAD = 0.25
"""Evidence that disagrees with itself by more than this share is no evidence."""
REPORTS_TO_SWITCH = 3
"""A model takes over once it has reported so often in a row; a helper model in between moves nothing."""
KEPT_MODELS = 8


class Evidence(msgspec.Struct, array_like=True):
    """What one model has reported: pairs of our count and the provider's, newest last."""

    observations: list[tuple[int, int]] = []
    stated: float = 0.0
    """The factor that a host's own count implies; 0 where it has sent none."""


class CalibrationState(msgspec.Struct, array_like=True):
    """Everything that is kept between two runs of a server."""

    counter: str
    factor: float = 1.0
    version: int = 0
    model: str = ""
    streak: int = 0
    """Reports in a row by a model other than `model`."""
    evidence: dict[str, Evidence] = {}


class Calibration:
    """The factor between our counts and a provider's, for one session and the model that it mainly uses.

    A provider counts more than the sidecar sees: its report is `overhead + factor * count`, where the
    overhead is the host's system prompt and tool schemas. The factor comes from how both grow together, so
    that the overhead does not enter it.
    """

    def __init__(self, counter: str, state: CalibrationState | None = None) -> None:
        """Starts at factor 1, or where `state` left off if it was made with the same counter."""
        if state is None:
            state = CalibrationState(counter)
        elif state.counter != counter or not LOWEST_FACTOR <= state.factor <= HIGHEST_FACTOR:
            state = CalibrationState(counter, version=state.version + 1)
        self._state = state

    @classmethod
    def from_bytes(cls, counter: str, kept: bytes) -> Calibration:
        """The calibration that `to_bytes` wrote; a fresh one where `kept` is empty or unreadable."""
        try:
            return cls(counter, msgspec.msgpack.decode(kept, type=CalibrationState))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return cls(counter)

    def to_bytes(self) -> bytes:
        """At most a few hundred bytes that `from_bytes` understands."""
        return msgspec.msgpack.encode(self._state)

    @property
    def factor(self) -> float:
        """What a count has to be multiplied by; 1 as long as there is no sure evidence."""
        return self._state.factor

    @property
    def version(self) -> int:
        """Rises whenever `factor` changes; a caller that sees a new one raises the context epoch."""
        return self._state.version

    def tokens(self, count: int) -> int:
        """A count in the provider's tokens, rounded up."""
        return -int(-count * self._state.factor // 1)

    def uncalibrated(self, tokens: int) -> int:
        """What we counted, from what `tokens` made of it."""
        return round(tokens / self._state.factor)

    def observe(self, model: str, counted: int, reported: int) -> bool:
        """Take in that a context of `counted` tokens by our count cost `reported` input tokens.

        `counted` is the count before calibration (`uncalibrated`), else each factor would undo the last one.
        True where that gave a new factor.
        """
        if counted <= 0 or reported <= 0:
            return False
        evidence = self._evidence(model)
        evidence.observations = [*evidence.observations, (counted, reported)][-KEPT_OBSERVATIONS:]
        return self._reconsider(model)

    def trust(self, model: str, counted: int, stated: int) -> bool:
        """Take in the host's own count of exactly what we counted; it wins over all reports of usage.

        True where that gave a new factor.
        """
        if counted < LEAST_DISTANCE or stated <= 0:
            return False
        self._evidence(model).stated = stated / counted
        return self._reconsider(model)

    def overhead(self) -> int:
        """The tokens in the latest report that no count of ours explains; 0 where nothing was reported."""
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
    """The factor that the evidence supports, 0 where it is too thin, and the share by which it may be off."""
    factor, doubt = (evidence.stated, 0.0) if evidence.stated else _median_slope(evidence.observations)
    return (round(min(max(factor, LOWEST_FACTOR), HIGHEST_FACTOR), 2), doubt) if factor > 0 else (0.0, 0.0)


def _median_slope(observations: list[tuple[int, int]]) -> tuple[float, float]:
    """How many reported tokens one more counted token brings, and how far the observations disagree on it."""
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
