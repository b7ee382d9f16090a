"""JSON-RPC 2.0 over a stream of bytes; knows no method.

- `peer`: one side of a connection; begin here. `router` says what it serves, `call` is what a handler gets.
- `framing`, `envelope`, `params`: from bytes to a typed request, with the right error for everything else.
- `dispatch`, `lanes`, `parking`, `limits`: when a request runs. `outgoing`: requests of ours. `errors`.
- `outbox`, `transport`, `stdio`, `reading`, `writing`: bytes in and out without blocking the loop.
- `progress`: what a client shows while it waits. `observing`: what somebody hears who watches.
"""
