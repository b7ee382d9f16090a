"""Plays recorded sessions to a sidecar, judges every answer independently, and reports: replay and eval."""
