"""What holds where the `default` engine is not configured; known without loading the settings model."""

SUMMARY_TOKENS = 1500
COMPACT_TO = 0.5
