"""The `lossless` engine: summaries of summaries over a history that stays complete."""

from sidecar.engines.lossless.engine import LosslessEngine

__all__ = ["LosslessEngine"]
