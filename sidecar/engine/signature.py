"""Short hashes of texts, stable across restarts."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports before the first answer combined.
from _blake2 import blake2b


def digest(text: str) -> str:
    """A short hash of a text, 16 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
