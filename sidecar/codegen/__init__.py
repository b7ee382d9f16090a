"""Generates schema, tables and client types from `sidecar.protocol`; imports nothing by itself."""
