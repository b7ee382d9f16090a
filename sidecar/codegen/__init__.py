"""Generates the schema, the reference pages and the clients' types from `sidecar.protocol`."""
