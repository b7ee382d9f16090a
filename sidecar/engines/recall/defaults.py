"""What holds where the `recall` engine is not configured; known without loading the settings model."""

RECALL_TOKENS = 6000
NOTES_TOKENS = 2000
COMPACT_TO = 0.5
