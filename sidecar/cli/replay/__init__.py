"""Replays a recorded session through the real process, and judges every answer independently of it."""
