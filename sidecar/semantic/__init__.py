"""Finds by meaning: an index of vectors beside the index of words; the extra `semantic`."""
