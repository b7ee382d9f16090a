"""The command `context-sidecar`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; `serve` starts without loading what only the other commands need."""
    if len(sys.argv) > 1 and sys.argv[1] == "serve":
        from sidecar.cli.serve import serve

        serve(sys.argv[2:])
    from sidecar.cli.commands import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
