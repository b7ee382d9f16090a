"""What is kept beside the messages: facts, summaries, state, settings."""

from sidecar.store.contract import (
    AddSummary,
    Configure,
    Facts,
    Fork,
    SaveFacts,
    SaveState,
    SessionRef,
    SessionSettings,
    SummaryNode,
    Truncate,
)
from tests.store_kit import REF, Driver, reply, texts, user

CHILD = SessionRef("host", "child")
FACTS = Facts(12, -(1 << 63), (1 << 63) - 1, 0)


def node(node_id: str, first: int, last: int, depth: int = 0, text: str = "t") -> SummaryNode:
    return SummaryNode(
        node_id=node_id,
        first_position=first,
        last_position=last,
        text=text,
        tokens=5,
        quality="model",
        created_ms=7,
        depth=depth,
        sources=("a", "b") if depth else (),
    )


def tokens(store: Driver, ref: SessionRef) -> list[int | None]:
    return [row.facts and row.facts.tokens for row in store.run(store.store.keyed(ref, 1, 99))]


def test_facts_given_with_a_message_are_kept(store: Driver) -> None:
    store.append(REF, user("a", facts=FACTS), "b")
    assert [row.facts for row in store.run(store.store.keyed(REF, 1, 2))] == [FACTS, None]


def test_facts_are_saved_by_position(store: Driver) -> None:
    revision = store.append(REF, "a", "b", "c").head.revision
    store.write(SaveFacts(REF, revision, [(3, FACTS), (1, Facts(1, 0, 0, 0)), (9, FACTS)]))
    assert tokens(store, REF) == [1, None, 12]
    store.write(SaveFacts(REF, revision, [(1, Facts(2, 0, 0, 0))]))
    assert tokens(store, REF) == [2, None, 12]


def test_facts_for_messages_that_moved_are_dropped(store: Driver) -> None:
    revision = store.append(REF, "a", "b").head.revision
    store.append(REF, reply("x", after=1))
    store.write(SaveFacts(REF, revision, [(2, FACTS)]))
    store.write(SaveFacts(CHILD, revision, [(2, FACTS)]))
    assert tokens(store, REF) == [None] * 3


def test_facts_are_saved_through_a_fork_for_all_who_share_the_message(store: Driver) -> None:
    store.append(REF, "a", "b")
    head = store.write(Fork(REF, CHILD, None))
    store.write(SaveFacts(CHILD, head.revision, [(2, FACTS)]))
    assert (tokens(store, REF), tokens(store, CHILD)) == ([None, 12], [None, 12])


def test_messages_without_facts_are_handed_out_until_they_have_them(store: Driver) -> None:
    store.append(REF, "a", user("b", facts=FACTS), "c")
    store.append(CHILD, "d", message_format="anthropic")
    batches = store.run(store.store.without_facts(10))
    assert {batch[0]: (batch[1], texts(batch[3])) for batch in batches} == {
        REF: ("openai", ["a", "c"]),
        CHILD: ("anthropic", ["d"]),
    }
    for ref, _, revision, messages in batches:
        store.write(SaveFacts(ref, revision, [(message.position, FACTS) for message in messages]))
    assert store.run(store.store.without_facts(10)) == []
    store.append(REF, "e")
    assert [texts(batch[3]) for batch in store.run(store.store.without_facts(10))] == [["e"]]


def test_messages_are_handed_out_again_while_nobody_has_saved_their_facts(store: Driver) -> None:
    revision = store.append(REF, "a", "b", "c").head.revision
    first = store.run(store.store.without_facts(10))
    assert store.run(store.store.without_facts(10)) == first
    store.write(SaveFacts(REF, revision, [(2, FACTS)]))
    assert [texts(batch[3]) for batch in store.run(store.store.without_facts(10))] == [["a", "c"]]


def test_no_more_messages_without_facts_are_handed_out_than_asked_for(store: Driver) -> None:
    store.append(REF, *"abcdefgh")
    found = store.run(store.store.without_facts(3))
    assert [texts(batch[3]) for batch in found] == [["a", "b", "c"]]


def test_messages_copied_for_a_fork_still_lack_their_facts(store: Driver) -> None:
    store.append(REF, "a", "b")
    store.write(Fork(REF, CHILD, None))
    store.append(CHILD, reply("x", after=0))
    batches = {batch[0]: texts(batch[3]) for batch in store.run(store.store.without_facts(10))}
    assert {ref: sorted(found) for ref, found in batches.items()} == {REF: ["a", "b"], CHILD: ["a", "b", "x"]}


def test_summaries_come_by_position_and_depth(store: Driver) -> None:
    revision = store.append(REF, *"abcdef").head.revision
    nodes = [node("n3", 5, 6), node("n4", 1, 4, depth=1), node("n1", 1, 2), node("n2", 3, 4)]
    for each in nodes:
        assert store.write(AddSummary(REF, each, revision=revision)) is True
    assert store.run(store.store.summaries(REF)) == [nodes[2], nodes[1], nodes[3], nodes[0]]


def test_a_summary_takes_the_place_of_those_it_replaces(store: Driver) -> None:
    revision = store.append(REF, *"abcd").head.revision
    for each in (node("n1", 1, 2), node("n2", 3, 4)):
        store.write(AddSummary(REF, each, revision=revision))
    condensed = node("n3", 1, 4, depth=1)
    store.write(AddSummary(REF, condensed, revision=revision, replaces=["n1", "n2", "nowhere"]))
    assert store.run(store.store.summaries(REF)) == [condensed]


def test_a_summary_of_the_same_id_is_replaced(store: Driver) -> None:
    revision = store.append(REF, "a").head.revision
    for text in ("old", "new"):
        store.write(AddSummary(REF, node("n", 1, 1, text=text), revision=revision))
    assert [each.text for each in store.run(store.store.summaries(REF))] == ["new"]


def test_a_summary_of_an_older_revision_is_not_kept_and_replaces_nothing(store: Driver) -> None:
    added = store.append(REF, "a", "b")
    store.write(AddSummary(REF, node("n1", 1, 1), revision=added.head.revision))
    store.write(Truncate(REF, added.items[0].message_id))
    late = AddSummary(REF, node("n2", 1, 1), revision=added.head.revision, replaces=["n1"])
    assert store.write(late) is False
    assert [each.node_id for each in store.run(store.store.summaries(REF))] == ["n1"]
    assert store.write(AddSummary(CHILD, node("n", 1, 1), revision=0)) is False


def test_state_is_kept_by_name_and_removed_by_none(store: Driver) -> None:
    store.write(SaveState(REF, "a", b""))
    store.write(SaveState(REF, "b", b"\0\xff"))
    store.write(SaveState(REF, "b", b"later"))
    assert store.run(store.store.state(REF, "a")) == b""
    assert store.run(store.store.state(REF, "b")) == b"later"
    store.write(SaveState(REF, "a", None))
    assert store.run(store.store.state(REF, "a")) is None
    assert store.run(store.store.state(CHILD, "b")) is None


def test_settings_change_member_by_member(store: Driver) -> None:
    store.write(Configure("host", "session", "main", engine="full"))
    store.write(Configure("host", "session", "main", config=b'{"a":1}'))
    assert store.run(store.store.settings("host", "session", "main")) == SessionSettings("full", b'{"a":1}')
    assert store.run(store.store.settings("host", "agent", "main")) == SessionSettings(None, None)
    assert store.run(store.store.settings("other", "session", "main")) == SessionSettings(None, None)
