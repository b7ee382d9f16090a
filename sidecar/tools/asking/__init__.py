"""Answers a question from the history by a bounded plan of searches."""
