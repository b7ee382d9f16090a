"""Which old results and images are replaced, how, and which are not."""

from collections.abc import Sequence

import pytest

from sidecar.engine.entry import Entry
from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.guard.replacement import Replacement
from sidecar.server.sessions.timeline import SessionTimeline
from tests.e2e.conversations import DIALECTS, Call, Speaker
from tests.guard_kit import Told

BUDGET = 10_000
RULES = PruningRules(enabled=True, recent_groups=1, start_share=0)


class Story(Told):
    """A session whose old parts are checked after pruning."""

    def pruned(
        self, rules: PruningRules = RULES, budget: int = BUDGET, spared: Sequence[int] = ()
    ) -> list[Entry]:
        """All messages as sent after pruning; pruning again changes nothing."""

        async def prune(timeline: SessionTimeline) -> list[Entry]:
            timeline.stubs = stubs = self.guard.no_stubs()
            for again in (False, True):
                shown = (await timeline.tail(1 << 40)).entries
                ids = [shown[index].message_id for index in spared]
                changed = self.guard.prune(stubs, rules, shown, budget, ids)
                assert not (again and changed), "pruned anew without need"
            return (await timeline.tail(1 << 40)).entries

        return self.run(prune)


def told(speaker: Speaker, *calls: tuple[Call, str], size: int = 1_200) -> Story:
    """One turn with these calls, then a turn of about `size` tokens, and a last call."""
    messages = [speaker.user("do it")]
    for call, text in calls:
        messages += [*speaker.assistant("", [call]), *speaker.results([(call, text)])]
    last = ("call_last", "read", {"q": "last"})
    messages += [*speaker.assistant("done"), speaker.user(speaker.words(size))]
    messages += [*speaker.assistant("", [last]), *speaker.results([(last, speaker.words(1500))])]
    return Story(speaker.dialect, messages)


def hows(entries: Sequence[Entry]) -> list[str]:
    return [entry.how for entry in entries if entry.reading.results]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_is_shortened_first_and_left_out_when_it_is_older(dialect: str) -> None:
    speaker = Speaker(dialect)
    calls = [(speaker.new_call(), f"head {speaker.words(1500)} tail") for _ in range(3)]
    entries = told(speaker, *calls).pruned()
    assert hows(entries)[-2:] == ["trim", ""] and hows(entries)[0] == "clear"
    trimmed = next(entry for entry in entries if entry.how == "trim")
    text = trimmed.reading.results[0].text
    assert "head" in text and "tail" in text and trimmed.message_id in text
    for entry in entries:
        assert entry.whole is None or entry.tokens < entry.whole.tokens
    assert not speaker_check(entries)


def speaker_check(entries: Sequence[Entry]) -> list[object]:
    """The problems that the provider would find in a list."""
    from sidecar.messages.dialects import dialect

    name = entries[0]._dialect.name  # pyright: ignore[reportPrivateUsage]
    return list(dialect(name).check([entry.reading for entry in entries]))


def test_nothing_is_pruned_of_a_session_that_takes_little_of_its_budget() -> None:
    speaker = Speaker("openai")
    story = told(speaker, (speaker.new_call(), speaker.words(1500)))
    assert hows(story.pruned(PruningRules(enabled=True), budget=40_000)) == ["", ""]
    assert hows(story.pruned(PruningRules(enabled=False))) == ["", ""]


def test_the_result_of_a_call_that_was_made_again_goes() -> None:
    speaker = Speaker("openai")
    calls = [("call_1", "read", {"q": "a"}), ("call_1", "read", {"q": "b"}), ("call_3", "read", {"q": "a"})]
    entries = told(speaker, *((call, speaker.words(600)) for call in calls)).pruned(
        PruningRules(enabled=True, recent_groups=1, start_share=0, clear_share=1, trim_tokens=5_000)
    )
    assert hows(entries) == ["duplicate", "", "", ""], "ids that come again are not the same call"


def test_the_result_of_a_failed_call_is_cut_to_its_first_lines() -> None:
    speaker = Speaker("openclaw")
    story = told(speaker, (("call_1", "bash", {}), "error: no such file\n" + speaker.words(800)))
    story._messages = [  # pyright: ignore[reportPrivateUsage]
        raw.replace(b'"isError":false', b'"isError":true')
        .replace(b'"isError": false', b'"isError": true')
        .replace(b'"isError":  false', b'"isError":  true')
        if b"no such file" in raw
        else raw
        for raw in story._messages  # pyright: ignore[reportPrivateUsage]
    ]
    entries = story.pruned(PruningRules(enabled=True, recent_groups=1, start_share=0, clear_share=1))
    assert hows(entries)[0] == "failed" and "no such file" in entries[2].reading.results[0].text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_old_images_of_the_user_go_and_the_text_stays(dialect: str) -> None:
    speaker = Speaker(dialect)
    messages = [speaker.picture("look at this"), *speaker.assistant("a cat")]
    messages += [speaker.user(speaker.words(1200)), *speaker.assistant("yes"), speaker.picture("and this")]
    entries = Story(dialect, messages).pruned()
    assert entries[0].how == "images" and entries[0].reading.media == ()
    assert "look at this" in entries[0].reading.text and entries[0].opens_turn
    assert entries[-1].how == "" and entries[-1].reading.media


def test_protected_tools_and_spared_messages_stay_whole() -> None:
    speaker = Speaker("openai")
    calls = [(f"call_{n}", name, {"n": n}) for n, name in enumerate(("bash", "read_file", "bash"))]
    story = told(speaker, *((call, speaker.words(1500)) for call in calls))
    entries = story.pruned(
        PruningRules(enabled=True, recent_groups=1, start_share=0, protected_tools=("read*",)), spared=[2]
    )
    assert [bool(how) for how in hows(entries)] == [False, False, True, False]


def test_the_newest_groups_stay_whole_however_large() -> None:
    speaker = Speaker("anthropic")
    calls = [(speaker.new_call(), speaker.words(3000)) for _ in range(4)]
    entries = told(speaker, *calls, size=10).pruned(PruningRules(enabled=True, recent_groups=3), budget=4_000)
    assert hows(entries) == ["clear", "clear", "", "", ""]


def test_pruned_results_shrink_further_if_the_minimum_does_not_fit() -> None:
    speaker = Speaker("openai")
    call = speaker.new_call()
    messages = [
        speaker.user("go"),
        *speaker.assistant("", [call]),
        *speaker.results([(call, speaker.words(2000))]),
    ]
    story = Story("openai", messages)

    async def work(timeline: SessionTimeline) -> tuple[str, str]:
        timeline.stubs = stubs = story.guard.no_stubs()
        entry = (await timeline.tail(1 << 40)).entries[-1]
        stubs.replace({entry: Replacement("trim", "m", "t1", entry.tokens, 1200, 600)})
        before = (await timeline.tail(1 << 40)).entries[-1].how
        await story.guard.shrink_minimum(stubs, timeline, 150)
        return before, (await timeline.tail(1 << 40)).entries[-1].how

    assert story.run(work) == ("trim", "clear")
