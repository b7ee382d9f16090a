"""Statements that a receipt lists from messages left out by a compaction."""

import pytest

from sidecar.recall.omissions import omissions
from sidecar.recall.retrieval import Remark


def remark(position: int, role: str, text: str) -> Remark:
    return Remark(position, f"t{position}", role, 0, text)


RULE = remark(1, "user", "Always run the linter before you commit.")
DECISION = remark(5, "user", "We decided to keep the old ledger format.")
COMMITMENT = remark(4, "assistant", "Done. I'll move the fixtures once the suite is green.")
CHATTER = remark(6, "assistant", "The ferry left the pier at noon.")
SAID = [RULE, COMMITMENT, DECISION, CHATTER]


def test_instructions_come_first_then_commitments_then_decisions() -> None:
    found = omissions(SAID, "", 8)
    assert [(each.kind, each.remark.position) for each in found] == [
        ("instruction", 1),
        ("commitment", 4),
        ("decision", 5),
    ]
    assert found[1].text == "I'll move the fixtures once the suite is green."


@pytest.mark.parametrize("kept", [RULE, COMMITMENT, DECISION])
def test_text_quoted_in_a_summary_does_not_count_as_left_out(kept: Remark) -> None:
    found = omissions(SAID, f"[t{kept.position}] {kept.role}:\n {kept.text.upper()}", 8)
    assert kept not in [each.remark for each in found]
    assert len(found) == 2


def test_of_one_kind_the_newest_come_first_and_the_same_words_once() -> None:
    again = [remark(n, "user", "We decided to keep the old ledger format.") for n in (2, 9)]
    found = omissions([DECISION, *again, remark(7, "user", "We switched to tabs.")], "", 8)
    assert [each.remark.position for each in found] == [9, 7]


def test_no_more_omissions_are_listed_than_requested() -> None:
    many = [remark(n, "user", f"We decided on plan number {n}, the one with boat {n}.") for n in range(30)]
    assert len(omissions(many, "", 8)) == 8


def test_results_of_tools_decide_nothing() -> None:
    result = Remark(3, "t3", "tool", 0, "decided: we switched to tabs", is_result=True)
    assert omissions([result], "", 8) == []
