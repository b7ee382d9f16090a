"""Middleware that gives Python agent frameworks the engines of the sidecar; each framework is an extra."""
