"""JSON-RPC 2.0 over a stream of bytes; knows no method.

- `peer`: one side of a connection; begin here. `router`: what it serves, and the call that a handler gets.
- `framing`, `envelope`: from bytes to messages, with the right error for everything else. `errors`.
- `dispatch`, `lanes`: when a request runs. `outgoing`: our own requests that wait for an answer.
- `stdio`: bytes in and out over descriptors, without blocking the loop.
"""
