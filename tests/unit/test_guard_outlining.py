"""The outline of a large text is bounded, true to the text and informative."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.engine.guard.replacement import HEAD, LINE, LINES, TAIL, outlined

MOST = HEAD + TAIL + LINES * (LINE + 30) + 100
ANY = st.lists(st.sampled_from(["error in src/a.py", "word", "\n", "OPS-77 ", "漢字", "x" * 500, "\r\n"]))


@given(ANY, st.integers(1, 40))
def test_any_text_is_outlined_within_bounds_and_with_both_ends(parts: list[str], times: int) -> None:
    text = "start " + "".join(parts) * times + "y" * (HEAD + TAIL) + " end"
    shown = outlined(text)
    assert len(shown) <= MOST
    assert shown.startswith("start ") and shown.endswith(" end")


def test_errors_come_before_paths_and_paths_before_ids() -> None:
    plain = "nothing to see\n" * 2000
    many = "".join(f"see docs/page{chr(97 + n % 26)}{chr(97 + n // 26)}.md\n" for n in range(200))
    text = f"{plain}{many}FATAL: the disk is full\n{plain}"
    lines = [line for line in outlined(text).splitlines() if line.startswith("[line ")]
    assert len(lines) == LINES and lines[-1] == "[line 2201] FATAL: the disk is full"
    assert lines[0] == "[line 2001] see docs/pageaa.md"


def test_lines_that_differ_only_in_numbers_are_shown_once() -> None:
    text = "a\n" * 2000 + "".join(f"error 17{n} in part {n}\n" for n in range(500)) + "b\n" * 2000
    assert sum(line.startswith("[line ") for line in outlined(text).splitlines()) == 1
