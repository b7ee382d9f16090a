"""`python -m tests.screenshots.readme`: takes the pictures of the README from real runs.

A comparison of engines as a terminal shows it, and the inspector as Chromium shows it.
"""

import os
import subprocess
import sys
import tempfile

from sidecar.cli.demo import SESSION
from tests.client_kit import PROGRAM
from tests.screenshots.neovim import ROOT, picture

IMAGES = ROOT / "spec" / "server" / "images"
ENGINES = ("default", "lossless", "recall", "full", "sliding-window", "terse")
BUDGET = "6k"
COLUMNS = 110
LIMIT_S = 120
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")


def comparison() -> None:
    """The table of `replay` with several engines."""
    command = [PROGRAM, "replay", SESSION.name, "--budget", BUDGET]
    command += [word for engine in ENGINES for word in ("--engine", engine)]
    variables = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "COLORTERM": "truecolor"}
    done = subprocess.run(
        command,
        cwd=SESSION.parent,
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    shown = [
        f"$ context-sidecar replay {SESSION.name} --budget {BUDGET} --engine default --engine lossless ..."
    ]
    shown += [line for line in done.stdout.rstrip().split("\n") if line.strip()]
    picture(IMAGES / "replay.svg", "\n".join(shown), COLUMNS, len(shown))


def inspector() -> None:
    """The page of a session in the inspector."""
    with tempfile.TemporaryDirectory() as home:
        command = [PROGRAM, "inspect", str(SESSION), "--no-open", "--budget", BUDGET, "--state-dir", home]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            path = IMAGES / "inspector.png"
            options = (f"--user-data-dir={home}/browser", "--window-size=1100,1240", f"--screenshot={path}")
            for _ in range(2):  # the first one has the conversation played
                subprocess.run(
                    [*CHROMIUM, *options, "--virtual-time-budget=4000", address],
                    timeout=LIMIT_S,
                    check=True,
                    stderr=subprocess.DEVNULL,
                )
            process.terminate()
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KB")


def main() -> int:
    """Take the pictures; returns the exit code."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    comparison()
    inspector()
    return 0


if __name__ == "__main__":
    sys.exit(main())
