"""The message dialects by name; only the requested one is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from sidecar.messages.contract import Dialect

DIALECTS: tuple[str, ...] = ("openai", "openai-responses", "anthropic", "openclaw")
"""The possible values of `messageFormat`."""

_loaded: dict[str, Dialect] = {}


def dialect(name: str) -> Dialect:
    """The dialect with that name.

    Raises:
        KeyError: there is no dialect of that name.
    """
    found = _loaded.get(name)
    if found is None:
        if name not in DIALECTS:
            raise KeyError(name)
        module = import_module(f"{__name__}.{name.replace('-', '_')}")
        found = _loaded[name] = module.DIALECT
    return found


def dialect_of_family(name: str, secrets: Sequence[bytes], root: str) -> Dialect:
    """The dialect bound to one family of sessions, so that it recognises our own fences.

    `secrets` and `root` are as for `Marks`.

    Raises:
        KeyError: as for `dialect`.
    """
    from sidecar.messages.marks import Marks

    return dialect(name).marked(Marks(secrets, root))
