"""The checks of servers, by what they are about."""

from importlib import import_module

AREAS = (
    "framing",
    "lifecycle",
    "flow",
    "storing",
    "assembling",
    "sessions",
    "compacting",
    "memory",
    "messages",
)
"""The modules, in the order in which they are run; the last one looks back at all messages of the run."""


def load() -> None:
    """Add the checks of every area to the suite."""
    for area in AREAS:
        import_module(f"{__name__}.{area}")
