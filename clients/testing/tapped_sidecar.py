"""Runs the sidecar in this very process and writes down every message on its pipes.

Usage: python tapped_sidecar.py LOG serve ...; LOG gets a JSON line per message, `LOG.pid` the process id.
"""

import json
import os
import sys
import threading
from pathlib import Path


def tee(source: int, target: int, direction: str, log: int) -> None:
    """Copies until the end of `source`; whole Content-Length messages are logged once they are complete."""
    pending = b""
    while chunk := os.read(source, 65536):
        pending += chunk
        while (head := pending.find(b"\r\n\r\n")) >= 0:
            length = int(pending[:head].lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body, rest = pending[head + 4 : head + 4 + length], pending[head + 4 + length :]
            if len(body) < length:
                break
            os.write(log, json.dumps({"to": direction, "body": json.loads(body)}).encode() + b"\n")
            pending = rest
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
    os.close(target)


def main() -> None:
    """Puts pipes in the place of standard input and output, then starts the command line."""
    path, *arguments = sys.argv[1:]
    Path(f"{path}.pid").write_text(str(os.getpid()), encoding="ascii")
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    host_in, host_out = os.dup(0), os.dup(1)
    from_host, to_sidecar = os.pipe()
    from_sidecar, to_host = os.pipe()
    os.dup2(from_host, 0)
    os.dup2(to_host, 1)
    os.close(from_host)
    os.close(to_host)
    threading.Thread(target=tee, args=(host_in, to_sidecar, "sidecar", log), daemon=True).start()
    threading.Thread(target=tee, args=(from_sidecar, host_out, "host", log), daemon=True).start()
    sys.argv = ["context-sidecar", *arguments]
    from sidecar.cli.main import main as command_line

    command_line()


main()
