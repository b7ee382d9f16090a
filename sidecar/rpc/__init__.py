"""JSON-RPC 2.0 over a byte stream, independent of any method.

- `peer`: one side of a connection; start here. `router`: the methods it serves, and the call a handler gets.
- `framing`, `envelope`: bytes to messages, with the right error for anything malformed. `errors`.
- `dispatch`, `lanes`: when a request runs. `outgoing`: our own requests awaiting an answer.
- `stdio`: non-blocking bytes in and out over file descriptors.
"""
