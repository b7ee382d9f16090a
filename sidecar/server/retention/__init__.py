"""Erasing sessions that nobody uses any more, by age or size of the store."""
