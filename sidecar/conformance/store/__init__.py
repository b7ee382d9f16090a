"""The conformance suite for session stores.

To run it on your own store, write a place, which holds the data of one check::

    class MyPlace:
        capabilities = ("durable", "search")

        def store(self, extract): return MyStore(self.folder, extract)
        def remove(self): shutil.rmtree(self.folder)

`context-sidecar conformance store my_package.places:MyPlace` then runs the checks.
"""

from importlib import import_module

from sidecar.conformance.store.subject import (
    CAPABILITIES,
    SUITE,
    MakePlace,
    StorePlace,
    Subject,
    declared_by,
    providing,
)

__all__ = ["CAPABILITIES", "SUITE", "MakePlace", "StorePlace", "Subject", "declared_by", "providing"]

_AREAS = (
    "append",
    "insert",
    "erasure",
    "fork",
    "session_state",
    "submission",
    "durability",
    "search",
    "buffers",
)
"""Modules that add their checks to the suite, in running order."""

for _area in _AREAS:
    import_module(f"{__name__}.{_area}")
