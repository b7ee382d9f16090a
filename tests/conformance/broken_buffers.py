"""Ways to break buffers."""

from collections.abc import Callable
from typing import Any

from pytest import MonkeyPatch

from sidecar.store.buffer import Buffer, BufferPlace, ClaimEpisodes, ClearInjectedIds
from tests.conformance.dictionary.buffer import MemoryBuffers


def _pushed(patch: MonkeyPatch, change: Callable[[Any], None]) -> None:
    push = MemoryBuffers.push

    def pushed(rows: Any, write: Any) -> int:
        change(write)
        return push(rows, write)

    patch.setattr(MemoryBuffers, "push", pushed)


def forgets_keys_of_episodes(patch: MonkeyPatch) -> None:
    _pushed(patch, lambda write: setattr(write, "session_key", None))


def keeps_one_buffer_for_all(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryBuffers, "_of", lambda rows, _: list(rows._held.values()))


def clears_nothing(patch: MonkeyPatch) -> None:
    drop = MemoryBuffers.drop
    patch.setattr(MemoryBuffers, "drop", lambda rows, write: 0 if write.rowids is None else drop(rows, write))


def counts_what_it_was_asked_to_delete(patch: MonkeyPatch) -> None:
    drop = MemoryBuffers.drop

    def dropped(rows: Any, write: Any) -> int:
        count = drop(rows, write)
        return count if write.rowids is None else len(write.rowids)

    patch.setattr(MemoryBuffers, "drop", dropped)


def uses_row_ids_again(patch: MonkeyPatch) -> None:
    push = MemoryBuffers.push

    def pushed(rows: Any, write: Any) -> int:
        rows._next_row = max(rows._held, default=0) + 1
        return push(rows, write)

    patch.setattr(MemoryBuffers, "push", pushed)


def leases_nothing(patch: MonkeyPatch) -> None:
    claim = MemoryBuffers.claim

    def claimed(rows: Any, write: Any) -> Any:
        found = claim(rows, write)
        for held in rows._held.values():
            held.leased_until_ms, held.holder = 0, None
        return found

    patch.setattr(MemoryBuffers, "claim", claimed)


def lets_everybody_drop_what_is_leased(patch: MonkeyPatch) -> None:
    drop = MemoryBuffers.drop

    def dropped(rows: Any, write: Any) -> int:
        for held in rows._held.values():
            held.holder = None
        return drop(rows, write)

    patch.setattr(MemoryBuffers, "drop", dropped)


def leases_for_ever(patch: MonkeyPatch) -> None:
    claim = MemoryBuffers.claim

    def claimed(rows: Any, write: Any) -> Any:
        write.lease_ms = 1 << 50
        return claim(rows, write)

    patch.setattr(MemoryBuffers, "claim", claimed)


def claims_any_number(patch: MonkeyPatch) -> None:
    async def claim(buffer: Any, limit: int, lease_ms: int) -> Any:
        return await buffer._open().write(
            ClaimEpisodes(buffer._place, buffer._holder, max(limit, 0), lease_ms)
        )

    patch.setattr(Buffer, "claim", claim)


def serves_from_a_closed_buffer(patch: MonkeyPatch) -> None:
    async def close(buffer: Any) -> None:
        del buffer

    patch.setattr(Buffer, "close", close)


def takes_every_id_for_new(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryBuffers, "add_injected_id", lambda *_: True)


def keeps_one_set_of_ids_for_all(patch: MonkeyPatch) -> None:
    add, has = MemoryBuffers.add_injected_id, MemoryBuffers.has_injected_id
    place = BufferPlace("", "")
    patch.setattr(MemoryBuffers, "add_injected_id", lambda rows, _, __, item: add(rows, place, "", item))
    patch.setattr(MemoryBuffers, "has_injected_id", lambda rows, _, __, item: has(rows, place, "", item))


def clears_the_ids_of_every_session(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryBuffers, "clear_injected_ids", lambda rows, _: rows._injected.clear())


def clears_all_ids_of_a_session_at_once(patch: MonkeyPatch) -> None:
    def clear(rows: MemoryBuffers, write: ClearInjectedIds) -> None:
        rows._injected.pop((write.place, write.session_id), None)

    patch.setattr(MemoryBuffers, "clear_injected_ids", clear)


def normalizes_ids(patch: MonkeyPatch) -> None:
    add = MemoryBuffers.add_injected_id
    patch.setattr(
        MemoryBuffers,
        "add_injected_id",
        lambda rows, place, session, item: add(rows, place, session, item.strip()),
    )


def forks_know_nothing_of_what_was_injected(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryBuffers, "copy_injected_ids", lambda *_: None)
