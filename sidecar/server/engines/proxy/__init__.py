"""Engines in processes of their own: the engine contract across a process boundary."""
