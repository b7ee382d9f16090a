"""`context-sidecar engines`: the engines there are, and the way from an idea to one of your own."""
