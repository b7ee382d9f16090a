"""`python -m tests.screenshots.neovim`: takes the pictures of the plugin for Neovim from a real terminal.

Neovim runs in tmux, on a store of its own with a recorded session; what the terminal shows is written as SVG.
`NVIM` names the Neovim. Needs tmux.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path

from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from sidecar.cli.demo import SESSION
from tests.e2e.outside.programs import SERVER
from tests.e2e.sidecar_host import Host

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "clients" / "neovim"
IMAGES = PLUGIN / "images"
WIDTH, HEIGHT = 112, 26
LIMIT_S = 60.0
SESSION_KEY = "tide-tables"

PALE, DARK = "#e0e2ea", "#14161b"
"""Colours of Neovim where it names none."""
CELL, LINE, EDGE, LETTER = 8.4, 18, 10, 14
"""Width and height of a character, room around them, size of the font; in pixels."""
FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="{letter}"
 font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace">
<rect width="{width}" height="{height}" rx="8" fill="{dark}"/>
{cells}
</svg>
"""

INIT = """\
set termguicolors noswapfile nowrap number laststatus=0 shortmess+=I background=dark signcolumn=no
lua vim.opt.runtimepath:append('{plugin}')
runtime plugin/context_sidecar.lua
lua require('context_sidecar').setup {{ cmd = {{ '{server}', 'serve' }}, engine = 'lossless' }}
lua vim.diagnostic.config {{ virtual_text = true }}
"""


class Terminal:
    """A tmux server of its own with one Neovim in it; both end with the with-block."""

    def __init__(self, home: Path) -> None:
        self._socket = home / "tmux"
        init = home / "init.vim"
        init.write_text(INIT.format(plugin=PLUGIN, server=SERVER), encoding="utf-8")
        variables = {
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "CONTEXT_SIDECAR_STATE_DIR": str(home / "sidecar"),
        }
        editor = f"{os.environ.get('NVIM', 'nvim')} -u {init} -i NONE"
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT)),
            *(part for name, value in variables.items() for part in ("-e", f"{name}={value}")),
            *("-c", str(home), editor),
        )
        self._tmux("set-option", "-g", "status", "off")
        self._tmux("set-option", "-sa", "terminal-overrides", ",*:Tc")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def command(self, text: str) -> None:
        """Type an Ex command."""
        self.keys("Escape")
        self._tmux("send-keys", "-l", f":{text}")
        self.keys("Enter")

    def keys(self, *names: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._tmux("send-keys", *names)

    def shows(self, words: str) -> str:
        """What the terminal shows, with its colours, once the words are in it and nothing moves."""
        deadline, before = time.monotonic() + LIMIT_S, ""
        while time.monotonic() < deadline:
            now = self._tmux("capture-pane", "-e", "-p")
            if now == before and words in Text.from_ansi(now).plain:
                return now
            before = now
            time.sleep(0.5)
        raise AssertionError(f"the terminal does not show {words!r}: {Text.from_ansi(before).plain}")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, check=True, capture_output=True, timeout=30).stdout.decode()


def picture(path: Path, shown: str, columns: int = WIDTH, lines: int = HEIGHT) -> None:
    """Write what a terminal shows as an SVG of a few dozen kilobytes."""
    console = Console(width=columns, file=StringIO(), color_system="truecolor", legacy_windows=False)
    cells: list[str] = []
    for number, line in enumerate(shown.rstrip("\n").split("\n")):
        column = 0
        for segment in Text.from_ansi(line).render(console):
            cells += run(segment, column, number)
            column += segment.cell_length
    width, height = round(columns * CELL) + 2 * EDGE, lines * LINE + 2 * EDGE
    frame = FRAME.format(width=width, height=height, letter=LETTER, dark=DARK, cells="\n".join(cells))
    path.write_text(frame, encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KB")


def run(segment: Segment, column: int, line: int) -> Iterator[str]:
    """Characters of one style, from a column of a line on: what is behind them, and they themselves."""
    style = segment.style or Style.null()
    front, back = hexadecimal(style.color), hexadecimal(style.bgcolor)
    if style.reverse:
        front, back = back or DARK, front or PALE
    text = segment.text.rstrip("\n")
    width, x, y = segment.cell_length * CELL, EDGE + column * CELL, EDGE + line * LINE
    if back and back != DARK and width:
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE}" fill="{back}"/>'
    if text.strip():
        look = ' font-weight="bold"' if style.bold else ""
        place = f'x="{x:.1f}" y="{y + LETTER}" textLength="{width:.1f}" xml:space="preserve"'
        yield f'<text {place} fill="{front or PALE}"{look}>{escape(text)}</text>'


def hexadecimal(colour: Color | None) -> str | None:
    """A colour as SVG has it, `None` for that of the terminal."""
    return None if colour is None or colour.is_default else colour.get_truecolor().hex


def store_session(home: Path) -> None:
    """Keep the recorded session in the store, with summaries of its first half."""
    with Host(home / "sidecar", namespace="default", engine="lossless") as agent:
        messages = [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]
        agent.call("context/ingestBatch", sessionId="s-1", sessionKey=SESSION_KEY, messages=messages)
        agent.call("context/compact", sessionId="s-1", tokenBudget=3_000, force=True)


def main() -> int:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="neovim-shots-") as folder:
        home = Path(folder)
        store_session(home)
        transcript = home / "session.jsonl"
        transcript.write_bytes(SESSION.read_bytes())
        with Terminal(home) as terminal:
            terminal.command("edit session.jsonl")
            terminal.shows("tokens")
            terminal.command("lua vim.lsp.codelens.refresh()")
            terminal.command("4")
            terminal.command("lua vim.lsp.buf.hover()")
            picture(IMAGES / "transcript.svg", terminal.shows("message 4 of"))
            terminal.command("only")
            terminal.command(f"Context {SESSION_KEY}")
            terminal.command("only")
            picture(IMAGES / "context.svg", terminal.shows("What became of each message"))
            terminal.command("ContextSearch Husum")
            terminal.shows("user: ")
            terminal.command("cc 3")
            terminal.command("only | copen 8 | wincmd k")
            terminal.command("set wrap")
            picture(IMAGES / "search.svg", terminal.shows("33 tokens"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
