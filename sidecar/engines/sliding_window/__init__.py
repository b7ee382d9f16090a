"""The `sliding-window` engine: the newest turns or tokens, evicted in blocks."""

from sidecar.engines.sliding_window.engine import SlidingWindowEngine

__all__ = ["SlidingWindowEngine"]
