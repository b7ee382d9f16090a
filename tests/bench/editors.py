"""`python -m tests.bench.editors`: measures what a large transcript costs in an editor.

The real server is spoken to as an editor does: a transcript is opened, its symbols are asked for, and while
they are worked out small requests measure how long the connection keeps others waiting. Then it is edited.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.editor import Editor, edit
from tests.e2e.transcript_files import lines, openai
from tests.wire.harness import request

WORDS = "word 字 "
EDITS = 10
PATIENCE_S = 300

Json = dict[str, Any]


def main() -> int:
    """Measure one size."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.editors", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=50, help="size of the transcript (default 50)")
    parser.add_argument(
        "--message-bytes", type=int, default=4_000, help="size of each answer in it (default 4000)"
    )
    options = parser.parse_args()
    text = transcript(options.megabytes, options.message_bytes)
    size = len(text.encode()) / 1e6
    print(f"{size:.0f} MB, {text.count(chr(10)):,} messages; load {os.getloadavg()[0]:.1f}")
    with Editor() as editor:
        pid = editor.server.pid
        before, started, used = peak_mb(pid), time.perf_counter(), cpu_s(pid)
        uri = editor.open(text)
        waits, turns = symbols_beside_pings(editor, uri)
        told("first symbols", started, used, pid, f"{turns:,} turns")
        behind = waits.pop()
        waits = sorted(waits) or [behind]
        print(
            f"  other requests meanwhile: median {1000 * waits[len(waits) // 2]:.0f} ms,"
            f" longest {1000 * waits[-1]:.0f} ms, {len(waits)} of them;"
            f" the one behind the symbols {1000 * behind:.0f} ms, their transfer included"
        )
        print(f"  memory: {peak_mb(pid) - before:.0f} MB more than before, {peak_mb(pid):.0f} MB at most")
        started, used = time.perf_counter(), cpu_s(pid)
        for number in range(EDITS):
            editor.change(uri, edit(4, 29, 29, "x"), version=number + 2)
        answered(editor, "edited", "workspace/symbol", {"query": ""})
        told(f"{EDITS} edits", started, used, pid, "up to the answer to a small request")
        started, used = time.perf_counter(), cpu_s(pid)
        document = {"textDocument": {"uri": uri}}
        answered(editor, "again", "textDocument/documentSymbol", document)
        told("symbols after them", started, used, pid, "")
        started, used = time.perf_counter(), cpu_s(pid)
        answered(editor, "folds", "textDocument/foldingRange", document)
        told("folds of the same text", started, used, pid, "")
    return 0


def transcript(megabytes: float, message_bytes: int) -> str:
    """A conversation of that size, a message a line."""
    answer = WORDS * (message_bytes // len(WORDS.encode()))
    rows: list[Json] = []
    size = 0
    while size < megabytes * 1e6:
        turn = openai()
        turn[-2] = {"role": "assistant", "content": f"answer {len(rows)} {answer}"}
        rows += turn
        size += message_bytes + 500
    return lines(*rows)


def symbols_beside_pings(editor: Editor, uri: str) -> tuple[list[float], int]:
    """How long small requests took while the symbols were worked out, in seconds, and the number of turns."""
    params = {"textDocument": {"uri": uri}}
    editor.server.say(request("symbols", "textDocument/documentSymbol", params))
    waits: list[float] = []
    turns: int | None = None
    while turns is None:
        ping = f"ping-{len(waits)}"
        asked = time.perf_counter()
        editor.server.say(request(ping, "workspace/symbol", {"query": ""}))
        while (message := editor.server.read(PATIENCE_S)).get("id") != ping:
            if message.get("id") == "symbols":
                turns = len(message["result"])
        waits.append(time.perf_counter() - asked)
    return waits, turns


def answered(editor: Editor, name: str, method: str, params: Json) -> None:
    """Ask, and wait for the answer on a machine that has other work as well."""
    editor.server.say(request(name, method, params))
    while editor.server.read(PATIENCE_S).get("id") != name:
        pass


def told(what: str, started: float, used: float, pid: int, more: str) -> None:
    """Print the time since then."""
    wall, cpu = time.perf_counter() - started, cpu_s(pid) - used
    print(f"{what}: {1000 * cpu:.0f} ms of processor time, {1000 * wall:.0f} ms {more}".rstrip())


def cpu_s(pid: int) -> float:
    """Processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    """The most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
