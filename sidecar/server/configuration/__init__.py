"""Settings of one sidecar: where they come from, and which of them wins."""
