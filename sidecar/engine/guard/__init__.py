"""Makes every engine's answer safe: complete, valid and within budget."""
