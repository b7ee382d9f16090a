"""The `lossless` engine: summaries of summaries over a history that is kept whole."""

from sidecar.engines.lossless.engine import LosslessEngine

__all__ = ["LosslessEngine"]
