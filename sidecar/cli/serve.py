"""`context-sidecar serve`: speak the protocol on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

LOG_LEVELS = ("debug", "info", "warning", "error")

HELP = """\
Usage: context-sidecar serve [--stdio] [--config FILE] [--log-level LEVEL]

Speak the protocol on standard input and output, until the host ends the connection.

  --stdio            Accepted for editors, which append it; there is no other transport.
  --config FILE      Read this configuration file (default: config.toml in the user's configuration folder).
  --log-level LEVEL  debug, info, warning or error; the log goes to stderr (default: warning).
  --help             Show this text.
"""


class UsageError(Exception):
    """Raised when the command line cannot be understood."""


def serve(arguments: Sequence[str]) -> int:
    """Run the server; returns the exit code."""
    try:
        options = _parse(arguments)
    except UsageError as error:
        print(f"context-sidecar serve: {error}\n\n{HELP}", end="", file=sys.stderr)
        return 2
    if options is None:
        print(HELP, end="")
        return 0
    config_file, log_level = options
    from sidecar.server.application import SidecarApplication
    from sidecar.server.process import run

    return run(
        lambda router, peer: SidecarApplication(router, peer, config_file=config_file), log_level=log_level
    )


def _parse(arguments: Sequence[str]) -> tuple[Path | None, str] | None:
    """Configuration file and log level; `None` where help is wanted. A library would cost start-up."""
    config_file: Path | None = None
    log_level = "warning"
    rest = list(arguments)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        if name in ("--help", "-h"):
            return None
        if name == "--stdio":
            continue
        if name not in ("--config", "--log-level"):
            raise UsageError(f"unknown option {name}")
        if not value:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        if name == "--config":
            config_file = Path(value).expanduser()
        elif value in LOG_LEVELS:
            log_level = value
        else:
            raise UsageError(f"--log-level is one of {', '.join(LOG_LEVELS)}, not {value}")
    return config_file, log_level
