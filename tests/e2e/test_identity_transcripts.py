"""Identity where the host hands whole pieces of transcript over: known messages are not stored again."""

import pytest

from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import STAMP_MS, Message, Talk, turns

BUDGET = 100_000


def commit(host: Host, session: str, key: str, messages: list[Message]) -> str:
    return host.call("context/commitTurn", sessionId=session, advancementKey=key, messages=messages)["status"]


def assemble(host: Host, session: str, messages: list[Message], prompt: str) -> None:
    host.call("context/assemble", sessionId=session, messages=messages, prompt=prompt, tokenBudget=BUDGET)


def test_bootstrap_every_turn_imports_only_what_is_new(speaker: Host, talk: Talk, session: str) -> None:
    for end in range(1, 5):
        transcript = turns(talk, *range(end))
        result = speaker.call("context/bootstrap", sessionId=session, messages=transcript)
        assert result["bootstrapped"] == (end > 1) or end == 1
        assert result["importedMessages"] == (4 if end > 1 else len(transcript))
        again = speaker.call("context/bootstrap", sessionId=session, messages=transcript)
        assert (again["bootstrapped"], again["importedMessages"]) == (False, 0)
    assert history(speaker, session) == turns(talk, 0, 1, 2, 3)


def test_bootstrap_ingest_and_commit_may_come_in_any_order(speaker: Host, talk: Talk, session: str) -> None:
    speaker.call("context/bootstrap", sessionId=session, messages=turns(talk, 0))
    for message in talk.turn(1):
        speaker.call("context/ingest", sessionId=session, message=message)
    assert commit(speaker, session, "k1", talk.turn(1)) == "committed"
    assert commit(speaker, session, "k2", talk.turn(2)) == "committed"
    result = speaker.call("context/bootstrap", sessionId=session, messages=turns(talk, 0, 1, 2))
    assert not result["bootstrapped"]
    speaker.call("context/bootstrap", sessionId=session, messages=turns(talk, 0, 1, 2, 3))
    assert commit(speaker, session, "k3", talk.turn(3)) == "committed"
    assert history(speaker, session) == turns(talk, 0, 1, 2, 3)


def test_a_turn_that_was_ingested_live_is_not_stored_again_by_its_end(
    speaker: Host, talk: Talk, session: str
) -> None:
    for number in range(3):
        for message in talk.turn(number):
            speaker.call("context/ingest", sessionId=session, message=message)
        speaker.call("context/afterTurn", sessionId=session, messages=talk.turn(number))
    assert history(speaker, session) == turns(talk, 0, 1, 2)


def test_after_turn_takes_the_whole_transcript_where_it_counts_the_old_part(
    speaker: Host, talk: Talk, session: str
) -> None:
    for end in range(1, 4):
        transcript = turns(talk, *range(end))
        speaker.call(
            "context/afterTurn",
            sessionId=session,
            messages=transcript,
            prePromptMessageCount=len(transcript) - 4,
        )
    assert history(speaker, session) == turns(talk, 0, 1, 2)


def test_after_turn_with_a_count_fills_the_gaps_in_their_place(
    speaker: Host, talk: Talk, session: str
) -> None:
    speaker.call("context/afterTurn", sessionId=session, messages=talk.turn(0))
    speaker.call("context/afterTurn", sessionId=session, messages=talk.turn(2))
    transcript = turns(talk, 0, 1, 2, 3)
    speaker.call("context/afterTurn", sessionId=session, messages=transcript, prePromptMessageCount=12)
    assert history(speaker, session) == transcript


def test_turns_that_nobody_committed_become_history_with_the_next_commit(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    assemble(speaker, session, turns(talk, 0, 1), "question 2")
    assert history(speaker, session) == turns(talk, 0)
    commit(speaker, session, "k2", talk.turn(2))
    assert history(speaker, session) == turns(talk, 0, 1, 2)


def test_a_gap_that_is_seen_late_is_filled_in_its_place(speaker: Host, talk: Talk, session: str) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    commit(speaker, session, "k2", talk.turn(2))
    assemble(speaker, session, turns(talk, 0, 1, 2), "question 3")
    speaker.call("context/afterTurn", sessionId=session, messages=talk.turn(3))
    assert history(speaker, session) == turns(talk, 0, 1, 2, 3)


def test_the_open_turn_is_not_staged(speaker: Host, talk: Talk, session: str) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    opened = [*turns(talk, 0), *talk.turn(1)[:3]]
    speaker.call("context/assemble", sessionId=session, messages=opened, tokenBudget=BUDGET)
    rewritten = [*talk.turn(1)[:1], talk.assistant("a reply of another kind, without the tool")]
    commit(speaker, session, "k1", rewritten)
    assert history(speaker, session) == [*turns(talk, 0), *rewritten]


def test_a_staged_turn_is_not_stored_again_by_its_own_late_commit(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    assemble(speaker, session, turns(talk, 0, 1), "question 2")
    commit(speaker, session, "k1", talk.turn(1))
    commit(speaker, session, "k2", talk.turn(2))
    assert history(speaker, session) == turns(talk, 0, 1, 2)


def test_a_list_that_was_shown_later_is_stored_behind_an_earlier_one(host: Host, session: str) -> None:
    talk = Talk("openai")
    assemble(host, session, talk.turn(0), "question 1")
    assemble(host, session, talk.turn(1), "question 2")
    host.call("context/afterTurn", sessionId=session, messages=talk.turn(2))
    assert history(host, session) == turns(talk, 0, 1, 2)


def test_what_the_answer_before_left_out_stays_staged(host: Host, session: str) -> None:
    talk = Talk("openai")
    long = [talk.user("long " * 400), talk.assistant("indeed " * 400)]
    commit(host, session, "k0", talk.turn(0))
    assemble(host, session, [*talk.turn(0), *long, *talk.turn(2)], "next")
    cut = host.call(
        "context/assemble", sessionId=session, messages=[*talk.turn(2)], prompt="next", tokenBudget=BUDGET
    )
    assert cut["messages"]
    commit(host, session, "k3", talk.turn(3))
    assert history(host, session) == [*talk.turn(0), *long, *turns(talk, 2, 3)]


@pytest.mark.parametrize("rename", [lambda id: id.replace("_", ""), lambda id: id.replace("_", "-")])
def test_tool_call_ids_are_compared_by_letters_and_digits(
    speaker: Host, talk: Talk, session: str, rename
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    call_id = "call_0000_Xy00000000"
    same = [
        talk.turn(0)[0],
        talk.call(rename(call_id), "add", {"a": 0, "b": 0}),
        talk.result(rename(call_id), "add", "sum 0 is 0"),
        talk.turn(0)[3],
    ]
    assert not speaker.call("context/bootstrap", sessionId=session, messages=same)["bootstrapped"]
    assemble(speaker, session, same, "next")
    commit(speaker, session, "k1", talk.turn(1))
    assert history(speaker, session) == turns(talk, 0, 1)


def test_a_result_that_the_host_has_shortened_is_known_by_its_call(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    shortened = talk.turn(0)
    shortened[2] = talk.result("call_0000_Xy00000000", "add", "sum [... shortened]")
    assert not speaker.call("context/bootstrap", sessionId=session, messages=shortened)["bootstrapped"]
    assert history(speaker, session) == turns(talk, 0)


def test_a_message_that_the_host_has_edited_is_not_stored_again(
    speaker: Host, talk: Talk, session: str
) -> None:
    transcript = turns(talk, 0, 1, 2)
    speaker.call("context/bootstrap", sessionId=session, messages=transcript)
    edited = list(transcript)
    edited[0] = talk.user("question 0 in other words altogether")
    edited[7] = talk.assistant("redacted")
    result = speaker.call("context/bootstrap", sessionId=session, messages=edited)
    assert not result["bootstrapped"]
    answer = speaker.call("context/assemble", sessionId=session, messages=edited, tokenBudget=BUDGET)
    assert answer["messages"] == edited
    assert history(speaker, session) == transcript


@pytest.mark.parametrize(
    "decorated",
    [
        "[Sat 2026-11-21 03:25 UTC] question 1: how much is 1 and 1?",
        "question 1: how much is 1 and 1?\n\nRuntime: agent=main host=box os=linux",
        "  question 1:\thow much is 1 and 1?\n",
    ],
)
def test_decorated_texts_of_the_user_are_known(
    speaker: Host, talk: Talk, session: str, decorated: str
) -> None:
    transcript = turns(talk, 0, 1, 2)
    speaker.call("context/bootstrap", sessionId=session, messages=transcript)
    changed = list(transcript)
    changed[4] = talk.user(decorated)
    assert not speaker.call("context/bootstrap", sessionId=session, messages=changed)["bootstrapped"]


def test_a_message_into_which_the_next_one_was_merged_is_known(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    commit(speaker, session, "k1", talk.turn(1))
    merged = turns(talk, 0, 1)
    merged[3] = talk.assistant("answer 0: it is 0.\nand an announcement that nobody committed")
    assert not speaker.call("context/bootstrap", sessionId=session, messages=merged)["bootstrapped"]
    assemble(speaker, session, merged, "question 2")
    commit(speaker, session, "k2", talk.turn(2))
    assert history(speaker, session) == turns(talk, 0, 1, 2)


def test_time_stamps_tell_equal_messages_apart(serving_hosts, session: str) -> None:
    host, talk = serving_hosts("openclaw"), Talk("openclaw")
    transcript = [
        message
        for n in range(6)
        for message in (
            talk.user("ok", stamp=STAMP_MS + 2 * n),
            talk.assistant("done", stamp=STAMP_MS + 2 * n + 1),
        )
    ]
    for n in (0, 2, 5):
        commit(host, session, f"k{n}", transcript[2 * n : 2 * n + 2])
    result = host.call("context/bootstrap", sessionId=session, messages=transcript)
    assert result["importedMessages"] == 6
    assert history(host, session) == transcript


def test_a_list_that_starts_late_is_aligned_with_the_end(speaker: Host, talk: Talk, session: str) -> None:
    transcript = turns(talk, *range(6))
    speaker.call("context/bootstrap", sessionId=session, messages=transcript)
    result = speaker.call("context/bootstrap", sessionId=session, messages=transcript[-6:])
    assert not result["bootstrapped"]
    result = speaker.call("context/bootstrap", sessionId=session, messages=[*transcript[-6:], *talk.turn(6)])
    assert result["importedMessages"] == 4
    assert history(speaker, session) == turns(talk, *range(7))


def test_a_host_that_hands_over_less_of_the_oldest_every_time_is_followed(
    speaker: Host, talk: Talk, session: str
) -> None:
    transcript = turns(talk, 0, 1, 2)
    speaker.call("context/bootstrap", sessionId=session, messages=transcript)
    for number in range(3, 8):
        assemble(speaker, session, transcript[number - 2 :], f"question {number}")
        transcript += talk.turn(number)
    commit(speaker, session, "k7", talk.turn(7))
    assert history(speaker, session) == transcript


def test_a_system_message_that_the_host_makes_anew_is_stored_once(host: Host, session: str) -> None:
    talk = Talk("openai")
    told: list[Message] = []
    for number in range(1, 4):
        system = {"role": "system", "content": f"It is {number} o'clock; be good to the user."}
        shown = [system, *told]
        answer = host.call("context/assemble", sessionId=session, messages=shown, prompt="go on")
        assert answer["messages"][0] == system
        told += talk.turn(number)
        commit(host, session, f"k{number}", talk.turn(number))
    first = {"role": "system", "content": "It is 1 o'clock; be good to the user."}
    assert history(host, session) == [first, *told]


@pytest.mark.parametrize("changes", [False, True])
def test_what_lies_between_a_system_message_and_the_newest_messages_stays_in_context(
    changes: bool, host: Host, session: str
) -> None:
    talk = Talk("openai")
    system = {"role": "system", "content": "Be good to the user. It is 1 o'clock."}
    told = turns(talk, 1, 2, 3)
    host.call("context/bootstrap", sessionId=session, messages=[system, *told])
    if changes:
        system = {**system, "content": "Be good to the user. It is 2 o'clock."}
    for newest in (talk.turn(3), [*talk.turn(3), talk.user("and now?")]):
        answer = host.call("context/assemble", sessionId=session, messages=[system, *newest])
        assert answer["messages"] == [system, *turns(talk, 1, 2), *newest]
        again = host.call("context/assemble", sessionId=session, messages=answer["messages"])
        assert again["messages"] == answer["messages"]


def test_another_first_question_behind_the_system_message_begins_anew(host: Host, session: str) -> None:
    talk = Talk("openai")
    system = {"role": "system", "content": "Be good to the user."}
    host.call("context/bootstrap", sessionId=session, messages=[system, *turns(talk, 1, 2)])
    asked = [system, talk.user("something else instead")]
    assert host.call("context/assemble", sessionId=session, messages=asked)["messages"] == asked


def test_the_first_turn_is_known_behind_a_system_message_that_was_never_committed(
    host: Host, session: str
) -> None:
    asked = {"role": "user", "content": "fix the build"}
    replied = {"role": "assistant", "content": "It builds again."}
    assert commit(host, session, "k1", [asked, replied]) == "committed"
    system = {"role": "system", "content": "be brief"}
    shown = [system, asked, {**replied, "content": "It builds again. [sent 9:04]"}]
    result = host.call("context/bootstrap", sessionId=session, messages=shown)
    assert history(host, session).count(asked) == 1, result
