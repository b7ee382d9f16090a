"""Every kind of store does, over any sequence of writes, what a store of plain lists does."""

import tempfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sidecar.store import open_store
from sidecar.store.errors import SessionExists, SessionMissing
from sidecar.store.stored import Facts, NewMessage, SessionRef
from sidecar.store.writes import Delete, Fork, SaveFacts, Truncate
from tests.contract.store_model import Entry, Session
from tests.postgres_server import shared_server
from tests.store_kit import Driver

REFS = [SessionRef("host", name) for name in "abcdef"]
NAMES = st.none() | st.sampled_from(["x", "y", "z", "w"])


class StoreMachine(RuleBasedStateMachine):
    """Applies the same writes to a store and to the model."""

    kind: Literal["memory", "sqlite", "postgres"] = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        url = shared_server().fresh() if self.kind == "postgres" else None
        self.driver = Driver(lambda: open_store(self.kind, path, url=url))
        self.driver.__enter__()
        self.model: dict[SessionRef, Session] = {}
        self.count = 0

    def teardown(self) -> None:
        self.driver.__exit__(None, None, None)
        self.folder.cleanup()

    def entry(self, data: st.DataObject) -> tuple[Entry, NewMessage]:
        self.count += 1
        entry = Entry(
            text=str(self.count),
            opens=data.draw(st.booleans()),
            heartbeat=data.draw(st.integers(0, 5)) == 0,
            host_id=data.draw(NAMES | st.sampled_from(self.made_up_ids())),
            inner_id=data.draw(st.none() | st.none() | NAMES),
            label=data.draw(st.none() | st.none() | NAMES),
        )
        message = NewMessage(
            body=entry.text.encode(),
            role="user",
            opens_turn=entry.opens,
            message_id=entry.host_id,
            inner_id=entry.inner_id,
            heartbeat=entry.heartbeat,
            turn_id=entry.label,
        )
        return entry, message

    def made_up_ids(self) -> list[str | None]:
        found = [entry.message_id for session in self.model.values() for entry in session.entries]
        return [None, *list(dict.fromkeys(found))[:20]]

    def note(self, session: Session, entry: Entry, message_id: str) -> None:
        if entry.host_id is None:
            assert message_id not in session.used_ids
        entry.message_id = message_id
        session.used_ids.add(message_id)

    @rule(ref=st.sampled_from(REFS), count=st.integers(1, 4), data=st.data())
    def append(self, ref: SessionRef, count: int, data: st.DataObject) -> None:
        pairs = [self.entry(data) for _ in range(count)]
        items = self.driver.append(ref, *(message for _, message in pairs)).items
        session = self.model.setdefault(ref, Session())
        for (entry, _), item in zip(pairs, items, strict=True):
            double = session.double(entry)
            assert item.stored == (double is None)
            if double is None:
                session.append(entry)
                self.note(session, entry, item.message_id)
                assert item.position == len(session.entries)
            else:
                kept = session.entries[double]
                assert (item.position, item.message_id) == (double + 1, kept.message_id)
                assert item.existing == kept.text.encode()

    @rule(ref=st.sampled_from(REFS), data=st.data())
    def insert(self, ref: SessionRef, data: st.DataObject) -> None:
        session = self.model.setdefault(ref, Session())
        after = data.draw(st.integers(0, len(session.entries)))
        entry, message = self.entry(data)
        message.after = after
        item = self.driver.append(ref, message).items[0]
        double = session.double(entry)
        assert item.stored == (double is None)
        if double is None:
            session.insert(after, entry)
            self.note(session, entry, item.message_id)
            assert item.position == after + 1

    @rule(ref=st.sampled_from(REFS), data=st.data())
    def truncate(self, ref: SessionRef, data: st.DataObject) -> None:
        session = self.model.get(ref)
        if session is None:
            with pytest.raises(SessionMissing):
                self.driver.write(Truncate(ref, None))
            return
        count = data.draw(st.integers(0, len(session.entries)))
        message_id = session.entries[count - 1].message_id if count else None
        assert self.driver.write(Truncate(ref, message_id)) == len(session.entries) - count
        del session.entries[count:]

    @rule(parent=st.sampled_from(REFS), child=st.sampled_from(REFS), data=st.data())
    def fork(self, parent: SessionRef, child: SessionRef, data: st.DataObject) -> None:
        session = self.model.get(parent)
        count = data.draw(st.integers(0, len(session.entries))) if session else 0
        message_id = session.entries[count - 1].message_id if session and count else None
        if session is None or child in self.model:
            with pytest.raises((SessionMissing, SessionExists)):
                self.driver.write(Fork(parent, child, message_id))
            return
        self.driver.write(Fork(parent, child, message_id))
        self.model[child] = session.forked(count or len(session.entries))

    @rule(ref=st.sampled_from(REFS))
    def delete(self, ref: SessionRef) -> None:
        assert self.driver.write(Delete(ref)) == (self.model.pop(ref, None) is not None)

    @rule(ref=st.sampled_from(REFS), data=st.data())
    def add_facts(self, ref: SessionRef, data: st.DataObject) -> None:
        session = self.model.get(ref)
        head = self.driver.run(self.driver.store.session(ref))
        if session is None or head is None or not session.entries:
            return
        position = data.draw(st.integers(1, len(session.entries)))
        message_id = session.entries[position - 1].message_id
        self.count += 1
        self.driver.write(SaveFacts(ref, head.revision, [(position, Facts(self.count, 0, 0, 0))]))
        for other in self.model.values():
            for entry in other.entries:
                if entry.message_id == message_id and other is session:
                    entry.tokens = self.count

    @rule()
    def reopen(self) -> None:
        if self.kind != "memory":
            self.driver.reopen()

    @invariant()
    def messages_are_the_same(self) -> None:
        for ref, session in self.model.items():
            stored = self.driver.messages(ref)
            assert [(m.position, m.message_id, m.turn, m.turn_id, m.body.decode()) for m in stored] == [
                (position, e.message_id, e.turn, e.turn_id, e.text)
                for position, e in enumerate(session.entries, 1)
            ]

    @invariant()
    def heads_and_keys_are_the_same(self) -> None:
        for ref, session in self.model.items():
            head = self.driver.run(self.driver.store.session(ref))
            assert head is not None
            newest = session.entries[-1].turn if session.entries else 0
            assert (head.message_count, head.turn_count) == (len(session.entries), newest)
            for row, entry in zip(
                self.driver.run(self.driver.store.keyed(ref, 1, 1 << 30)), session.entries, strict=True
            ):
                assert (row.message_id, row.host_id, row.inner_id, row.turn_id) == (
                    entry.message_id,
                    entry.host_id,
                    entry.inner_id,
                    entry.turn_id,
                )
                assert entry.tokens is None or (row.facts is not None and row.facts.tokens >= entry.tokens)

    @invariant()
    def ids_lead_to_their_messages(self) -> None:
        for ref, session in self.model.items():
            for entry in session.entries[-3:]:
                found = self.driver.run(self.driver.store.message(ref, entry.message_id))
                assert found is not None
                assert found.body == entry.text.encode()


class SQLiteMachine(StoreMachine):
    """The same over a file."""

    kind = "sqlite"


class PostgresMachine(StoreMachine):
    """The same over a server."""

    kind = "postgres"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "machine", [StoreMachine, SQLiteMachine, PostgresMachine], ids=lambda each: each.kind
)
def test_a_store_does_what_plain_lists_do(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
