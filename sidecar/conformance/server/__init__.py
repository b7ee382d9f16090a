"""The conformance suite for servers in any language; it speaks to a server over its standard streams."""

from importlib import import_module

from sidecar.conformance.server.subject import SERVER_SUITE, Server, check, check_server
from sidecar.conformance.wire import expect_no_problems

__all__ = ["SERVER_SUITE", "Server", "check_server"]

for _area in ("framing", "lifecycle", "flow", "ingest", "assemble", "sessions", "compact", "memory"):
    import_module(f"{__name__}.{_area}")


@check("schema", "CEP-BASE-1", "CEP-BASE-3", "CEP-BASE-7", "CEP-BASE-8", "CEP-BASE-9")
def every_message_keeps_the_schema(server: Server) -> None:
    """Every message that the server sent during this run matches its type in the method table."""
    expect_no_problems(server.problems)
