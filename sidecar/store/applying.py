"""Which rule carries out which write."""

from collections.abc import Callable
from typing import Any

from sidecar.store.admission import adopt
from sidecar.store.appending import append
from sidecar.store.branching import fork, truncate
from sidecar.store.errors import StoreError
from sidecar.store.expiring import delete, expire
from sidecar.store.keeping import (
    add_summary,
    configure,
    record_advancement,
    save_facts,
    save_state,
    touch,
)
from sidecar.store.primitives import Tables
from sidecar.store.spawning import begin_spawn, end_spawn, prepare_spawn, roll_back_spawn, sweep_spawns
from sidecar.store.writes import Write

_RULES: dict[str, Callable[[Tables, Any], Any]] = {
    "adopt": adopt,
    "append": append,
    "truncate": truncate,
    "fork": fork,
    "delete": delete,
    "expire": expire,
    "configure": configure,
    "save_state": save_state,
    "save_facts": save_facts,
    "add_summary": add_summary,
    "touch": touch,
    "record_advancement": record_advancement,
    "push_episode": lambda tables, write: tables.buffers.push(write),
    "claim_episodes": lambda tables, write: tables.buffers.claim(write),
    "drop_episodes": lambda tables, write: tables.buffers.drop(write),
    "add_injected_id": lambda tables, write: tables.buffers.add_injected_id(
        write.place, write.session_id, write.item_id
    ),
    "clear_injected_ids": lambda tables, write: tables.buffers.clear_injected_ids(write),
    "prepare_spawn": prepare_spawn,
    "begin_spawn": begin_spawn,
    "roll_back_spawn": roll_back_spawn,
    "end_spawn": end_spawn,
    "sweep_spawns": sweep_spawns,
}


def apply(tables: Tables, write: Write) -> None:
    """Carry out one write, and set its `result` or `error`.

    A rule refuses before it changes anything, so a refusal needs no undoing. Whatever else is raised comes
    from the store itself, and leaves it to the store to undo the step.
    """
    write.result = None
    write.error = None
    try:
        write.result = _RULES[write.verb](tables, write)
    except StoreError as error:
        write.error = error
