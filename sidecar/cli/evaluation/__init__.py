"""Measures, without a model, whether engines put the evidence for recorded questions into the context."""
