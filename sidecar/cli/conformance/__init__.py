"""`context-sidecar conformance`: the suites on the command line."""
