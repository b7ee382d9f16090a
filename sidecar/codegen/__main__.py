"""Runs the generator: `python -m sidecar.codegen [--check] [--out DIR]`."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from sidecar.codegen.generate import generate


def main() -> int:
    """Exit status: 1 where `--check` finds a file that differs from the source, else 0."""
    parser = ArgumentParser(
        prog="python -m sidecar.codegen", description="Write the files made from sidecar/protocol."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file differs from the source"
    )
    parser.add_argument("--out", type=Path, default=Path(), help="root of the repository (default: here)")
    options = parser.parse_args()
    drifted = generate(options.out, options.check)
    for path in drifted:
        state = "differs from the source; run `python -m sidecar.codegen`" if options.check else "written"
        sys.stderr.write(f"{path}: {state}\n")
    return 1 if options.check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
