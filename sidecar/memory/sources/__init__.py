"""The memory sources that come with the sidecar; each imports the public contract, as outside ones do."""
