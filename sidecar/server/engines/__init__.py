"""Engines: which one serves a session, and how it is loaded, called and observed."""
