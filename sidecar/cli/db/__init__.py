"""`context-sidecar db`: looking after the store."""
