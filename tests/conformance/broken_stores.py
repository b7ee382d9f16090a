"""Every broken store, by the name of what is wrong with it."""

from importlib import import_module
from types import FunctionType

from tests.conformance.kept_store import Breaks

_PARTS = ("appends", "places", "erasure", "expiry", "forks", "keeping", "reads", "searches", "buffers")


def _broken_in(part: str) -> dict[str, Breaks]:
    module = import_module(f"tests.conformance.broken_{part}")
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


BROKEN: dict[str, Breaks] = {name: value for part in _PARTS for name, value in _broken_in(part).items()}
