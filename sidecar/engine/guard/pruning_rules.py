"""How far pruning goes: the settings of `[pruning]`, with their defaults."""

from __future__ import annotations

from msgspec import Struct


class PruningRules(Struct, frozen=True, kw_only=True):
    """When old tool results and images are replaced; shares are of the token budget."""

    enabled: bool = True
    start_share: float = 1.0
    """Nothing is pruned while the session takes less."""
    recent_share: float = 0.25
    """The newest part, which stays whole."""
    clear_share: float = 0.5
    """Results with more than this behind them are left out; nearer ones are shortened."""
    recent_groups: int = 3
    """The newest calls with their results, which stay whole; at least 1."""
    trim_tokens: int = 1_000
    """Larger results are shortened."""
    head_chars: int = 1_200
    """Characters kept of the beginning of a shortened result."""
    tail_chars: int = 600
    """Characters kept of its end."""
    clear_tokens: int = 200
    """Smaller results are never left out."""
    duplicates: bool = True
    """Leave out a result where the same call was made again later."""
    failures: bool = True
    """Shorten the results of calls that failed to their first lines."""
    images: bool = True
    """Leave out old images."""
    protected_tools: tuple[str, ...] = ()
    """Names of tools, `*` standing for anything, whose results stay."""
