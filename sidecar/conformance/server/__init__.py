"""Checks that tell whether a server, in whatever language, keeps the protocol."""
