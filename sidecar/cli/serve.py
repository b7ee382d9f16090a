"""`context-sidecar serve`: speak the protocol on standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from msgspec import structs

from sidecar.server.configuration.resolve import ENV_STATE_DIR, FORMATS, LEVELS, log_settings

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Router

HELP = """\
Usage: context-sidecar serve [--stdio] [--config FILE] [--state-dir DIR] [--engine ID]
                             [--log-level LEVEL] [--log-format FORMAT]

Speak the protocol on standard input and output, until the host ends the connection.

  --stdio              Accepted for editors, which append it; there is no other transport.
  --config FILE        Read this configuration file (default: config.toml in the user's configuration
                       folder).
  --state-dir DIR      Directory of the store (default: as configured).
  --engine ID          Engine for hosts that name none (default: as configured).
  --log-level LEVEL    debug, info, warning or error; the log goes to stderr (default: warning).
  --log-format FORMAT  text, or json for one object a line (default: text).
  --help               Show this text.
"""

_VARIABLES = {"--state-dir": ENV_STATE_DIR, "--engine": "CONTEXT_SIDECAR_ENGINE"}
_LOG_OPTIONS = {"--log-level": ("level", LEVELS), "--log-format": ("format", FORMATS)}


class Options(NamedTuple):
    """The command line."""

    config_file: Path | None
    log: Mapping[str, str]
    """Members of the log's settings that it decides."""
    variables: Mapping[str, str]
    """Variables of the environment in whose place it stands."""


class UsageError(Exception):
    """Raised when the command line cannot be understood."""


def serve(arguments: Sequence[str]) -> NoReturn:
    """Run the server, and end the process with it."""
    try:
        options = _parse(arguments)
    except UsageError as error:
        print(f"context-sidecar serve: {error}\n\n{HELP}", end="", file=sys.stderr)
        sys.exit(2)
    if options is None:
        print(HELP, end="")
        sys.exit()
    from sidecar.server.connection import SidecarApplication
    from sidecar.server.process import run

    os.environ.update(options.variables)
    asked = options.log
    log = structs.replace(log_settings(os.environ, []), **asked)

    def make(router: Router, peer: Peer) -> SidecarApplication:
        return SidecarApplication(router, peer, config_file=options.config_file, log=asked)

    run(make, log_level=log.level, log_format=log.format)


def _parse(arguments: Sequence[str]) -> Options | None:
    """What was asked for; `None` where help is wanted. A library would cost start-up."""
    config_file: Path | None = None
    log: dict[str, str] = {}
    variables: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        if name in ("--help", "-h"):
            return None
        if name == "--stdio":
            continue
        if name not in ("--config", *_VARIABLES, *_LOG_OPTIONS):
            raise UsageError(f"unknown option {name}")
        if not value:
            if not rest:
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        if name == "--config":
            config_file = Path(value).expanduser()
            continue
        if name in _VARIABLES:
            variables[_VARIABLES[name]] = value
            continue
        member, known = _LOG_OPTIONS[name]
        if value not in known:
            raise UsageError(f"{name} is one of {', '.join(known)}, not {value}")
        log[member] = value
    return Options(config_file, log, variables)
