"""Short stand-ins for texts, stable over restarts."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports of the first answer together.
from _blake2 import blake2b


def digest(text: str) -> str:
    """A short stand-in for a text in a signature."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
