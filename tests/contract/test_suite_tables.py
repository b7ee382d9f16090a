"""The tables about the suites say what is true."""

from tests.conformance.tables import BROKEN_PEERS, broken_peers
from tests.conformance.tracing import (
    REQUIREMENTS,
    SPEC,
    TRACEABILITY,
    UNCHECKED,
    checks_of_clauses,
    clauses,
    requirements,
    traceability,
)

REMADE_BY = "run `python -m tests.conformance.tables`"


def test_the_page_of_broken_peers_is_up_to_date() -> None:
    assert BROKEN_PEERS.read_text(encoding="utf-8") == broken_peers(), REMADE_BY


def test_the_page_of_clauses_and_checks_is_up_to_date() -> None:
    assert TRACEABILITY.read_text(encoding="utf-8") == traceability(), REMADE_BY


def test_what_a_version_of_the_protocol_requires_does_not_change_unseen() -> None:
    assert REQUIREMENTS.read_text(encoding="utf-8") == requirements(), REMADE_BY


def test_every_clause_with_a_must_has_a_check_or_a_reason() -> None:
    without = {clause.id for clause in clauses() if clause.is_must} - set(checks_of_clauses())
    assert without == set(UNCHECKED)


def test_what_a_clause_is_tested_by_exists() -> None:
    places = [place for _, place in UNCHECKED.values() if place is not None]
    assert [place for place in places if not (SPEC.parent / place).exists()] == []


def test_nineteen_of_twenty_clauses_with_a_must_have_a_check() -> None:
    musts = [clause.id for clause in clauses() if clause.is_must]
    assert len(UNCHECKED) <= len(musts) / 20


def test_checks_are_about_clauses_that_exist() -> None:
    assert set(checks_of_clauses()) <= {clause.id for clause in clauses()}
