"""One module for each generated file: each turns a `ProtocolModel` into text."""
