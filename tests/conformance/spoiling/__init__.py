"""Broken servers: ours, behind a proxy that spoils one thing."""
