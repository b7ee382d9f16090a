"""Markdown notes are split into sections with their location, ranked by a prompt."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.memory.sources.notes import LONGEST, Section, cut
from sidecar.memory.sources.workspace import ranked

TEXT = """intro

# Top

first
```
# no heading
```
## Inner
second
# Next
third
"""


def test_sections_have_their_lines_and_the_headings_that_they_stand_below() -> None:
    found = [(each.first, each.last, each.headings) for each in cut("a.md", TEXT)]
    assert found == [(1, 2, ()), (3, 8, ("Top",)), (9, 10, ("Top", "Inner")), (11, 12, ("Next",))]


@given(st.lists(st.text(alphabet=st.sampled_from("#`~ ab\n"), max_size=30), max_size=20).map("\n".join))
def test_no_line_that_says_something_is_lost_or_doubled(text: str) -> None:
    lines = text.splitlines()
    told = [n for each in cut("a.md", text) for n in range(each.first, each.last + 1)]
    assert told == sorted(set(told))
    assert {n for n, line in enumerate(lines, 1) if line.strip()} <= set(told)


def test_a_long_section_is_cut_at_a_blank_line() -> None:
    paragraph = "word " * (LONGEST // 5 + 1)
    parts = cut("a.md", f"# Long\n{paragraph}\n\nlast words\n")
    assert [part.text.endswith("last words") for part in parts] == [False, True]
    assert [(part.first, part.last) for part in parts] == [(1, 2), (3, 4)]


def test_sections_that_say_nothing_of_a_prompt_are_left_out() -> None:
    sections = [Section("a.md", 1, 1, (), text) for text in ("the staging port is 1", "soup on Mondays")]
    assert ranked(sections, "Which port does staging use?") == sections[:1]
    assert ranked(sections, "ok, thanks") == []
