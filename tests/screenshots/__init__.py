"""Pictures of the clients for their documents, taken from the real programs."""
