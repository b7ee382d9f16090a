"""The search index that every kind of store shares: terms, postings, ranking, matching."""
