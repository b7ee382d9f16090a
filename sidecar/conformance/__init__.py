"""Conformance suites for servers, clients, engines and stores; they need no test framework."""
