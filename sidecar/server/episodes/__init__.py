"""Buffers what was said in the turns of sessions, and lets it be delivered."""
