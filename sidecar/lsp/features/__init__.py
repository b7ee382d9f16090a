"""One module for each feature that editors get; each has a function `register`."""

from __future__ import annotations

from sidecar.lsp.features import document_symbol
from sidecar.lsp.language_server import TranscriptServer

FEATURES = (document_symbol,)


def register_features(server: TranscriptServer) -> None:
    """Add all features to the server."""
    for feature in FEATURES:
        feature.register(server)
