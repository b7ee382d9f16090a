"""Editor features for transcripts; only `sidecar.lsp.attach` may be imported without the extra `lsp`."""
