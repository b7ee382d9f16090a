"""The settings of `[pruning]`, with their defaults."""

from __future__ import annotations

from msgspec import Struct


class PruningRules(Struct, frozen=True, kw_only=True):
    """Rules for replacing old tool results and images; shares are of the token budget."""

    enabled: bool = True
    start_share: float = 1.0
    """Nothing is pruned while the session takes no more than this."""
    recent_share: float = 0.25
    """The newest part of the session, which stays whole."""
    clear_share: float = 0.5
    """Results followed by more than this are left out; more recent ones are shortened."""
    recent_groups: int = 3
    """Number of newest calls whose results stay whole; at least 1."""
    trim_tokens: int = 1_000
    """Larger results are shortened."""
    head_chars: int = 1_200
    """Characters kept from the start of a shortened result."""
    tail_chars: int = 600
    """Characters kept from its end."""
    clear_tokens: int = 200
    """Smaller results are never left out."""
    duplicates: bool = True
    """Leave out a result if the same call was repeated later."""
    failures: bool = True
    """Shorten results of failed calls to their first lines."""
    images: bool = True
    """Leave out old images."""
    protected_tools: tuple[str, ...] = ()
    """Tools whose results stay; `*` in a name matches anything."""
