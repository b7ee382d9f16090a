"""Injected memory on one connection: sources, what each session was given, what the host is told."""
