"""The `default` engine: one summary of older messages, recent ones intact."""

from sidecar.engines.default.engine import DefaultEngine

__all__ = ["DefaultEngine"]
