"""Runs an engine in a process of its own, which is spoken to as any sidecar is."""
