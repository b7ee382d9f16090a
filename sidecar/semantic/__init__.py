"""Search by meaning, with an index of vectors next to the index of words; needs the extra `semantic`."""
