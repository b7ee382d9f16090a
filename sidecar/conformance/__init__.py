"""Suites that tell whether a store, server, client or engine keeps the rules, without a test framework."""
