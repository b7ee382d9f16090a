"""The checks, one module for each part of what a client does."""

from importlib import import_module

AREAS = ("handshake", "reading", "answering", "waiting", "deltas", "restarting", "ending", "schema")
"""The modules, in the order in which they are run; the last one looks back at all messages of the run."""


def load() -> None:
    """Add the checks of every area to the suite."""
    for area in AREAS:
        import_module(f"{__name__}.{area}")
