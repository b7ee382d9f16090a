"""One module for each feature that editors get; each has a function `register`."""

from __future__ import annotations

from sidecar.lsp.features import (
    code_lens,
    definition,
    diagnostics,
    document_symbol,
    folding_range,
    hover,
    inlay_hint,
    semantic_tokens,
    workspace_symbol,
)
from sidecar.lsp.language_server import TranscriptServer

FEATURES = (
    document_symbol,
    folding_range,
    hover,
    inlay_hint,
    code_lens,
    definition,
    semantic_tokens,
    diagnostics,
    workspace_symbol,
)


def register_features(server: TranscriptServer) -> None:
    """Add all features to the server."""
    for feature in FEATURES:
        feature.register(server)
