from hypothesis import given
from hypothesis import strategies as st

from sidecar.summarize.contract import SourceMessage
from sidecar.summarize.deterministic import (
    LINES_PER_RESULT,
    LONGEST_PIECE,
    pieces_of,
    pieces_of_earlier,
    shorten,
)


def texts(role: str, text: str) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces_of([SourceMessage("m1", "t1", role, text)])]


def test_long_lines_are_cut_into_sentences() -> None:
    line = "I moved the service to port 8443 yesterday. The old port answers with a redirect. Is that fine?"
    assert texts("user", line) == [
        ("said", "I moved the service to port 8443 yesterday."),
        ("said", "The old port answers with a redirect."),
        ("said", "Is that fine?"),
    ]


def test_a_dot_inside_a_number_or_a_file_name_ends_no_sentence() -> None:
    line = (
        "The value in settings.toml went from 3.5 to 4.25 after the last change that we made to it on Monday."
    )
    assert texts("user", line) == [("said", line)]


def test_chinese_sentences_are_cut_without_blanks() -> None:
    first, second = "我们决定先迁移数据库，再开放测试环境。", "王敏负责联系供应商，周三之前必须有答复。"
    assert texts("user", first + second) == [("said", first), ("said", second)]


def test_a_tool_call_is_one_short_piece() -> None:
    found = texts("assistant", 'I read it.\nread_file({"path": "notes.txt", "content": "' + "x" * 900 + '"})')
    assert [kind for kind, _ in found] == ["said", "call"]
    assert found[1][1].startswith('read_file({"path": "notes.txt"') and len(found[1][1]) < 200


def test_lines_in_a_code_fence_are_code() -> None:
    assert texts("assistant", "Like this:\n```python\nx = 1\n```\nGood.") == [
        ("said", "Like this:"),
        ("code", "x = 1"),
        ("said", "Good."),
    ]


def test_of_a_long_tool_result_few_lines_are_quoted() -> None:
    output = "\n".join(f"/srv/data/file-{n}.csv is being read" for n in range(5000))
    found = texts("tool", output)
    assert len(found) <= LINES_PER_RESULT + 1
    assert found[0][1].startswith("/srv/data/file-0.csv")


def test_errors_in_a_tool_result_come_before_paths() -> None:
    paths = [f"/srv/data/file-{n}.csv" for n in range(500)]
    output = "\n".join([*paths[:250], "ValueError: bad header", *paths[250:]])
    assert ("result", "ValueError: bad header") in texts("tool", output)


def test_neighbouring_places_stand_next_to_each_other_in_the_message() -> None:
    output = "head\nnothing here\nerror: one\nerror: two"
    places = [piece.place for piece in pieces_of([SourceMessage("m1", "t1", "tool", output)])]
    assert places == [0, 2, 3]


def test_bullets_of_an_earlier_summary_keep_their_turn_and_role() -> None:
    pieces = pieces_of_earlier("- [t3] user: Use port 8443. Not 80.\n\nShe agreed.")
    assert [(piece.turn_id, piece.role) for piece in pieces] == [("t3", "user"), ("", "")]


@given(st.text(max_size=2000), st.sampled_from(["user", "assistant", "tool"]))
def test_every_piece_is_one_short_line_with_something_on_it(text: str, role: str) -> None:
    for _, piece in texts(role, text):
        assert piece == piece.strip() and piece.splitlines() == [piece]
        assert 0 < len(piece) <= LONGEST_PIECE


@given(st.text(max_size=200), st.integers(1, 100))
def test_a_shortened_text_keeps_the_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
