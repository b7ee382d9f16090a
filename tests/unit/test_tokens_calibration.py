from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.tokens.calibration import HIGHEST_FACTOR, LOWEST_FACTOR, Calibration

SYSTEM_PROMPT = 9_000


def report_turns(
    calibration: Calibration, model: str, factor: float, turns: int, noise: float = 0.0, seed: int = 1
) -> int:
    """Reports of a growing context whose host has a system prompt of its own; returns how often it moved."""
    chance = Random(seed)
    moves = 0
    for turn in range(turns):
        counted = 2_000 + 1_500 * (turn % 12)
        reported = SYSTEM_PROMPT + counted * factor * chance.uniform(1 - noise, 1 + noise)
        moves += calibration.observe(model, counted, int(reported))
    return moves


def test_without_evidence_a_count_stays_unchanged() -> None:
    calibration = Calibration("estimate-1")
    assert (calibration.factor, calibration.version, calibration.tokens(1234)) == (1.0, 0, 1234)


def test_a_provider_that_counts_a_quarter_more_gives_that_factor_despite_its_system_prompt() -> None:
    calibration = Calibration("estimate-1")
    assert report_turns(calibration, "a", 1.25, turns=12) == 1
    assert calibration.factor == pytest.approx(1.25, abs=0.02)
    assert calibration.version == 1


def test_tokens_that_our_counts_do_not_explain_are_reported_as_overhead() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "a", 1.25, turns=12)
    assert calibration.overhead() == pytest.approx(SYSTEM_PROMPT, rel=0.03)


def test_observing_answers_that_were_calibrated_already_keeps_the_factor() -> None:
    calibration = Calibration("estimate-1")
    for turn in range(48):
        sent = calibration.tokens(2_000 + 1_500 * (turn % 12))
        counted = calibration.uncalibrated(sent)
        calibration.observe("a", counted, SYSTEM_PROMPT + int(1.25 * counted))
    assert calibration.factor == pytest.approx(1.25, abs=0.02)
    assert calibration.version == 1


def test_a_difference_of_three_percent_changes_nothing() -> None:
    calibration = Calibration("estimate-1")
    assert report_turns(calibration, "a", 1.03, turns=40) == 0


@pytest.mark.parametrize("seed", range(5))
def test_noisy_reports_do_not_make_the_factor_flap(seed: int) -> None:
    calibration = Calibration("estimate-1")
    assert report_turns(calibration, "a", 1.2, turns=100, noise=0.01, seed=seed) <= 2
    assert calibration.factor == pytest.approx(1.2, abs=0.09)


def test_two_reports_are_not_enough() -> None:
    calibration = Calibration("estimate-1")
    assert report_turns(calibration, "a", 2.0, turns=2) == 0


def test_reports_that_contradict_each_other_change_nothing() -> None:
    calibration = Calibration("estimate-1")
    for turn in range(12):
        calibration.observe("a", 1_000 + 1_000 * turn, 5_000 + 9_000 * (turn % 2))
    assert calibration.factor == 1.0


def test_the_hosts_own_number_wins_over_reports() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "a", 1.25, turns=12)
    assert calibration.trust("a", 10_000, 14_000)
    assert calibration.factor == 1.4
    assert report_turns(calibration, "a", 1.25, turns=12) == 0


def test_a_helper_model_in_between_does_not_move_the_factor() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "main", 1.25, turns=12)
    version = calibration.version
    for turn in range(24):
        model = "helper" if turn % 3 == 0 else "main"
        counted = 2_000 + 1_500 * (turn % 12)
        calibration.observe(model, counted, int(counted * (1.0 if model == "helper" else 1.25)))
    assert calibration.version == version


def test_another_model_takes_over_once_it_is_used_alone() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "a", 1.25, turns=12)
    report_turns(calibration, "b", 0.8, turns=12)
    assert calibration.factor == pytest.approx(0.8, abs=0.02)
    assert calibration.version == 2


def test_it_goes_on_where_it_left_off() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "a", 1.25, turns=12)
    kept = calibration.to_bytes()
    again = Calibration.from_bytes("estimate-1", kept)
    assert (again.factor, again.version) == (calibration.factor, calibration.version)
    assert again.to_bytes() == kept
    assert len(kept) < 400


def test_another_counter_makes_the_factor_worthless_and_says_so() -> None:
    calibration = Calibration("estimate-1")
    report_turns(calibration, "a", 1.25, turns=12)
    exact = Calibration.from_bytes("o200k_base", calibration.to_bytes())
    assert (exact.factor, exact.version) == (1.0, 2)


@given(st.binary(max_size=60))
def test_unreadable_bytes_start_afresh(kept: bytes) -> None:
    assert LOWEST_FACTOR <= Calibration.from_bytes("estimate-1", kept).factor <= HIGHEST_FACTOR


@given(st.lists(st.tuples(st.integers(-5, 10**6), st.integers(-5, 10**7)), max_size=40))
def test_whatever_is_reported_the_factor_stays_within_its_bounds(reports: list[tuple[int, int]]) -> None:
    calibration = Calibration("estimate-1")
    versions = [calibration.version]
    for counted, reported in reports:
        moved = calibration.observe("a", counted, reported)
        versions.append(calibration.version)
        assert versions[-1] == versions[-2] + moved
        assert LOWEST_FACTOR <= calibration.factor <= HIGHEST_FACTOR
        assert calibration.tokens(0) == 0 < calibration.tokens(1)
