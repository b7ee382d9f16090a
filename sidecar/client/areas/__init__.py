"""The requests of the protocol as methods, one module for each area."""
