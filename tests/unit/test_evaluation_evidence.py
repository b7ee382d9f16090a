"""What counts as evidence that was found."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.cli.lab.questions import Question, evidence_among, evidence_in, normalized, share_in

TEXTS = {"1": "The gate code is 4711. It changes on the first of May.", "2": "看门人叫王立。他住在三楼。"}


def question(*groups: tuple[str, ...], type: str = "fact", answers: tuple[str, ...] = ()) -> Question:
    return Question(id="q", type=type, prompt="?", evidence=groups, answers=answers)


def test_a_message_is_found_whatever_its_case_and_spaces() -> None:
    assert (
        share_in(
            TEXTS["1"], normalized("they said: THE  gate code is 4711.\nIt changes on the first of may.")
        )
        == 1
    )


def test_half_of_a_message_is_enough_and_less_is_not() -> None:
    asked = question(("1",))
    assert evidence_in(asked, TEXTS, "It changes on the first of May.").evidence == 1
    assert evidence_in(asked, TEXTS, "The gate code is 4711.").evidence == 0


def test_of_a_group_any_message_will_do_and_of_several_groups_each_counts() -> None:
    assert evidence_in(question(("1", "2")), TEXTS, TEXTS["2"]).evidence == 1
    both = evidence_in(question(("1",), ("2",)), TEXTS, TEXTS["2"])
    assert (both.evidence, both.complete) == (0.5, False)


def test_of_a_call_the_value_itself_is_the_evidence() -> None:
    asked = question(("1",), type="grounding:argument", answers=("4711",))
    assert evidence_in(asked, TEXTS, "use 4711 for it").evidence == 1
    assert evidence_in(asked, TEXTS, "It changes on the first of May.").evidence == 0


def test_answers_are_searched_next_to_the_evidence() -> None:
    asked = question(("1",), answers=("4711", "the second of June"))
    assert evidence_in(asked, TEXTS, TEXTS["1"]).answers == 0.5
    assert evidence_in(question(("1",)), TEXTS, TEXTS["1"]).answers is None


def test_a_hit_counts_by_its_id_or_by_its_text() -> None:
    asked = question(("1",), ("2",))
    assert evidence_among(asked, TEXTS, [("1", ""), (None, TEXTS["2"])]) == 1
    assert evidence_among(asked, TEXTS, [("3", "nothing of the kind")]) == 0


@given(st.text(), st.text(), st.text())
def test_a_message_stands_whole_in_whatever_contains_it(before: str, message: str, after: str) -> None:
    assert share_in(message, normalized(f"{before}\n{normalized(message)}\n{after}")) == 1


@given(st.text(min_size=1), st.text())
def test_a_share_is_one(message: str, where: str) -> None:
    assert 0 <= share_in(message, normalized(where)) <= 1
