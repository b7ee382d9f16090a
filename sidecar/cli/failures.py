"""Reports any exception of a command as one line on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

import click

from sidecar.origin import install_command
from sidecar.secrecy import masked_text

PACKAGES = {
    "aiohttp": "http",
    "multidict": "http",
    "mcp": "mcp",
    "anyio": "mcp",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "jinja2": "inspect",
    "leather": "inspect",
}
"""The extra that installs each optional package."""

OK = 0
FAILURE = 1
USAGE = 2
INTERRUPTED = 130


class Outcome:
    """How a command ended."""

    code: int = OK


class CommandFailed(click.ClickException):
    """Raised if a command fails; the text says what to do."""

    exit_code = FAILURE


@contextmanager
def reported_failures(program: str) -> Generator[Outcome]:
    """Run the block, report any exception, and set the exit code of the outcome."""
    outcome = Outcome()
    try:
        yield outcome
    except click.exceptions.Exit as ended:
        outcome.code = ended.exit_code
    except click.Abort:
        _say(program, "interrupted")
        outcome.code = INTERRUPTED
    except KeyboardInterrupt:
        _say(program, "interrupted")
        outcome.code = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        outcome.code = USAGE
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx is not None else program
        _say(place, f"{error.format_message().rstrip('.')} (see `{place} --help`)")
        outcome.code = USAGE
    except click.ClickException as error:
        _say(program, error.format_message())
        outcome.code = error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = PACKAGES.get(package)
        hint = f"install it with: {install_command(extra)}" if extra else "the installation is not complete"
        _say(program, f"the package {package} is missing; {hint}")
        outcome.code = FAILURE
    except BrokenPipeError:
        # Nobody reads our output any more: print nothing, and leave nothing to flush at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        outcome.code = FAILURE
    except Exception as error:
        _say(program, _described(error))
        outcome.code = FAILURE


def _described(error: Exception) -> str:
    from sidecar.client.errors import RequestFailed, SidecarExited, SidecarNotStarted

    if isinstance(error, RequestFailed):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    if isinstance(error, SidecarExited):
        return f"{error} (run `context-sidecar doctor`)"
    if isinstance(error, SidecarNotStarted):
        return f"{error} (is the package installed?)"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = str(error)
    return text or f"{type(error).__name__} (run `context-sidecar doctor`)"


def _say(program: str, text: str) -> None:
    with suppress(OSError, ValueError):
        print(f"{program}: {masked_text(' '.join(text.split()))}", file=sys.stderr)
