"""Which turn a stored message belongs to."""

from sidecar.store.contract import Truncate
from tests.store_kit import REF, Driver, reply, user


def test_what_comes_before_the_first_user_message_is_turn_one(store: Driver) -> None:
    store.append(REF, reply("system", role="system"), "a", reply("b"), "c", reply("d"))
    assert store.turns(REF) == ["t1", "t1", "t1", "t2", "t2"]


def test_turns_go_on_over_several_writes(store: Driver) -> None:
    store.append(REF, "a")
    store.append(REF, reply("b"))
    result = store.append(REF, "c")
    assert result.items[0].turn_id == "t2"
    assert result.head.turn_count == 2


def test_a_heartbeat_opens_no_turn(store: Driver) -> None:
    store.append(REF, user("beat", heartbeat=True), "a", user("beat", heartbeat=True), reply("ok"), "b")
    assert store.turns(REF) == ["t1", "t1", "t1", "t1", "t2"]


def test_a_name_given_by_the_host_is_the_turns_id(store: Driver) -> None:
    store.append(REF, user("a", turn_id="morning"), reply("b", turn_id="morning"), reply("c"))
    assert store.turns(REF) == ["morning"] * 3
    assert store.messages(REF)[2].turn == 1


def test_another_name_opens_a_turn_even_without_a_user_message(store: Driver) -> None:
    store.append(REF, user("a", turn_id="x"), reply("b", turn_id="y"), user("c", turn_id="y"), "d")
    assert [(m.turn, m.turn_id) for m in store.messages(REF)] == [(1, "x"), (2, "y"), (2, "y"), (3, "t3")]


def test_a_host_may_use_our_own_names(store: Driver) -> None:
    store.append(REF, user("a", turn_id="t1"), reply("b", turn_id="t1"), user("c", turn_id="t2"), "d")
    assert store.turns(REF) == ["t1", "t1", "t2", "t3"]


def test_a_name_on_a_heartbeat_opens_no_turn(store: Driver) -> None:
    store.append(REF, "a", user("beat", heartbeat=True, turn_id="beat-1"))
    assert store.turns(REF) == ["t1", "t1"]


def test_turns_are_numbered_anew_after_truncation(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", reply("b"), "c", "d").items]
    store.write(Truncate(REF, ids[1]))
    head = store.append(REF, "e").head
    assert (store.turns(REF), head.turn_count) == (["t1", "t1", "t2"], 2)


def test_truncation_to_before_the_first_user_message_lets_the_next_be_turn_one(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, reply("sys", role="system"), "a", "b").items]
    store.write(Truncate(REF, ids[0]))
    store.append(REF, "c", "d")
    assert store.turns(REF) == ["t1", "t1", "t2"]


def test_truncation_within_turn_one_remembers_that_it_was_opened(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", reply("b"), "c").items]
    store.write(Truncate(REF, ids[1]))
    store.append(REF, "d")
    assert store.turns(REF) == ["t1", "t1", "t2"]


def test_truncation_brings_the_name_of_the_newest_turn_back(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, user("a", turn_id="x"), "b").items]
    store.write(Truncate(REF, ids[0]))
    store.append(REF, reply("c"))
    assert store.turns(REF) == ["x", "x"]


def test_the_start_of_a_turn_is_found(store: Driver) -> None:
    for index in range(20):
        store.append(REF, f"u{index}", *[reply("r")] * (index % 4))
    starts = [store.run(store.store.turn_start(REF, turn)) for turn in range(22)]
    texts = store.texts(REF)
    assert starts[0] is None
    assert starts[21] is None
    assert [texts[start - 1] for start in starts[1:21] if start] == [f"u{index}" for index in range(20)]
