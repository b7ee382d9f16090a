"""The checks, one module for each area of the specification."""

from importlib import import_module

AREAS = (
    "framing",
    "bad_input",
    "lifecycle",
    "handshake",
    "flow",
    "storing",
    "assembling",
    "replacing",
    "sessions",
    "tools",
    "compacting",
    "engines",
    "memory",
    "injecting",
    "subagents",
    "keeping_quiet",
    "schema",
)
"""The modules, in the order in which they are run; the last one looks back at all messages of the run."""


def load() -> None:
    """Add the checks of every area to the suite."""
    for area in AREAS:
        import_module(f"{__name__}.{area}")
