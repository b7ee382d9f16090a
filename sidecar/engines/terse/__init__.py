"""The `terse` engine: an activity log of older turns, the last turns in full."""

from sidecar.engines.terse.engine import TerseEngine

__all__ = ["TerseEngine"]
