"""Checks that tell whether a client, in whatever language, keeps the protocol."""
