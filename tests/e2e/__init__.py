"""Tests that drive `context-sidecar serve` as a host does."""
