"""What all messages of a run have in common."""

from __future__ import annotations

from sidecar.conformance.expecting import expect
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check

_SHOWN = 5


@check("schema", "CEP-BASE-1", "CEP-BASE-3", "CEP-BASE-7", "CEP-BASE-8", "CEP-BASE-9")
def every_message_keeps_the_schema(server: Server) -> None:
    """All messages that the server sent during this run are of the types that the method table names."""
    more = len(server.problems) - _SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    expect(not server.problems, "; ".join(server.problems[:_SHOWN]) + rest)
