"""Makes every engine's answer safe: complete, valid, within its budget."""
