"""Lists `serve` among the commands; the entry point starts it without loading this."""

from __future__ import annotations

import click


@click.command(
    "serve", add_help_option=False, context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Speak the protocol on standard input and output."""
    from sidecar.cli.serve import serve

    return serve(arguments)
