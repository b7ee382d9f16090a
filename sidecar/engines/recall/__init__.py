"""The `recall` engine: the newest turns, and older ones that the situation calls for."""

from sidecar.engines.recall.engine import RecallEngine

__all__ = ["RecallEngine"]
