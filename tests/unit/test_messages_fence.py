"""Synthetic text is known again whatever a host does to it, and nothing else is taken for it."""

from __future__ import annotations

import unicodedata
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.messages.contract import Mark, MarkKind
from sidecar.messages.decorations import undecorated
from sidecar.messages.fence import find, opened, strip, stub_ref, whole_mark, wrap

SUMMARY = Mark("summary", "s12")
RUNTIME = "\n\nRuntime: agent=main | host=box | model=fake/fake-1\nReasoning: off"
STAMP = "[Sat 2026-11-21 03:25 UTC] "

kinds: st.SearchStrategy[MarkKind] = st.sampled_from(get_args(MarkKind))
marks = st.builds(Mark, kinds, st.text(max_size=40))
fence_likes = st.sampled_from(
    ["[ctx:summary:s1:123456789]", "[/ctx]", "[\\/ctx]", "[\\\\ctx:", "[ctx:", "\n", "x", wrap(SUMMARY, "in")]
)
contents = st.one_of(st.text(), st.lists(fence_likes, max_size=6).map("".join))


@given(mark=marks, content=contents)
def test_what_was_wrapped_is_found_with_its_mark_and_content(mark: Mark, content: str) -> None:
    parts = find(wrap(mark, content))
    assert [(part.mark, part.content) for part in parts] == [(mark, content)]


@given(mark=marks, content=contents)
def test_a_wrapped_text_is_wholly_marked(mark: Mark, content: str) -> None:
    assert whole_mark(wrap(mark, content)) == mark


@given(content=contents)
def test_folded_white_space_does_not_hide_a_fence(content: str) -> None:
    assert whole_mark(" ".join(wrap(SUMMARY, content).split())) == SUMMARY


@given(content=st.text())
def test_decomposed_unicode_does_not_hide_a_fence(content: str) -> None:
    assert whole_mark(unicodedata.normalize("NFD", wrap(SUMMARY, content))) == SUMMARY


@pytest.mark.parametrize("before", ["", STAMP, "[03:25] ", "  \n"])
@pytest.mark.parametrize("behind", ["", RUNTIME, "\n\n", " Runtime: agent=main"])
def test_host_decorations_do_not_hide_a_fence(before: str, behind: str) -> None:
    assert whole_mark(f"{before}{wrap(SUMMARY, 'what went before')}{behind}") == SUMMARY


def test_merged_synthetic_messages_carry_the_first_mark() -> None:
    merged = f"{STAMP}{wrap(SUMMARY, 'one')}\n\n{STAMP}{wrap(Mark('memory', 'm'), 'two')}{RUNTIME}"
    assert whole_mark(merged) == SUMMARY


@pytest.mark.parametrize(
    "text",
    [
        f"{wrap(SUMMARY, 'one')}\n\nPlease go on.",
        f"Please go on.\n\n{wrap(SUMMARY, 'one')}",
        f"[yes] {wrap(SUMMARY, 'one')}",
        f"{wrap(SUMMARY, 'one')}{RUNTIME}\n\nPlease go on.",
        f"{wrap(SUMMARY, 'one')} and {wrap(SUMMARY, 'two')}",
        f"{wrap(SUMMARY, 'one')}\n\nRuntime: what is it?",
        "",
        "Please go on.",
    ],
)
def test_a_real_text_beside_a_fence_is_not_synthetic(text: str) -> None:
    assert whole_mark(text) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("went", "goes"),
        ("summary", "memory"),
        (":s12:", ":s13:"),
        ("[/ctx]", ""),
        ("before", "before and after"),
    ],
)
def test_a_changed_fence_is_plain_text(old: str, new: str) -> None:
    fenced = wrap(SUMMARY, "what went before")
    assert find(fenced.replace(old, new)) == []


def test_an_unknown_kind_is_plain_text() -> None:
    assert find("[ctx:weather:s1:123456789]\nsun\n[/ctx]") == []


def test_a_forged_opening_does_not_swallow_a_real_fence() -> None:
    text = f"[ctx:summary:s1:000000000]\nlook: {wrap(SUMMARY, 'real')}"
    assert [part.content for part in find(text)] == ["real"]


@given(before=st.text(), content=contents, behind=st.text())
def test_positions_delimit_the_fenced_part(before: str, content: str, behind: str) -> None:
    fenced = wrap(SUMMARY, content)
    parts = [part for part in find(f"{before}\n{fenced}\n{behind}") if part.content == content]
    assert any(f"{before}\n{fenced}\n{behind}"[part.start : part.stop] == fenced for part in parts)


def test_stripping_leaves_what_the_host_wrote() -> None:
    assert strip(f"hello\n\n{wrap(SUMMARY, 'one')}\n\nthere{wrap(SUMMARY, 'two')}") == "hello\n\n\n\nthere"


@given(text=st.text())
def test_a_text_without_fences_is_left_as_it_is(text: str) -> None:
    assert strip(text) == text


def test_decorations_come_off_a_users_text() -> None:
    assert undecorated(f"{STAMP}hello{RUNTIME}") == "hello"


@pytest.mark.parametrize("text", ["[note] hello", "Runtime: agent=main", "see [12:30]", "a\nRuntime: x=y"])
def test_what_a_user_wrote_in_brackets_stays(text: str) -> None:
    assert undecorated(text) == text


def test_a_stub_names_its_message() -> None:
    assert stub_ref(f"kept\n{wrap(Mark('stub', 'm 4/ü'), 'left out')}") == "m 4/ü"
    assert stub_ref(wrap(SUMMARY, "one")) is None


def test_a_pair_of_fences_is_short() -> None:
    assert len(wrap(SUMMARY, "")) < 40


def test_opened_text_has_the_content_without_the_fences() -> None:
    fenced = wrap(Mark("note", "a"), "inside [/ctx] of it")
    assert opened(f"before {fenced} after {fenced}") == "before inside [/ctx] of it after inside [/ctx] of it"
    assert opened("nothing [ctx: here") == "nothing [ctx: here"
