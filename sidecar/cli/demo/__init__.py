"""The demonstration: a session that comes with the package, replayed."""
