"""What holds where the engine is not configured; known without loading the settings model."""

LOW_WATER = 0.5
