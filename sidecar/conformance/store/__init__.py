"""The suite for session stores."""
