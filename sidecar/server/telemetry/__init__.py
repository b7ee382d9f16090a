"""Hands requests and calls of engines over to OpenTelemetry, where that is asked for; never what they say."""
