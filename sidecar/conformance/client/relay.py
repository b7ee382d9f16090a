"""The process that a client under test starts as its sidecar: passes bytes between it and the suite.

Run as a file, by a Python without anything else. What comes from the suite is packets: one letter, the size
in four bytes, the payload. `o` goes to standard output, `e` to standard error, `c` closes standard output,
`d` makes it deaf to SIGTERM, `n` is nothing, `x` ends the process with the status in the payload.
"""

import os
import signal
import socket
import struct
import sys
import threading


def listen(suite: socket.socket) -> None:
    """Hand on what the client writes, up to its end."""
    try:
        while data := os.read(0, 65536):
            suite.sendall(data)
        suite.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def write(descriptor: int, data: bytes) -> None:
    """Write all of it, wherever it goes."""
    while data:
        data = data[os.write(descriptor, data) :]


def obey(kind: bytes, payload: bytes) -> None:
    """Do what one packet says."""
    if kind == b"o":
        write(1, payload)
    elif kind == b"e":
        write(2, payload)
    elif kind == b"c":
        os.close(1)
    elif kind == b"d":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif kind == b"x":
        os._exit(int(payload))


def main() -> None:
    """Connect to the port in the arguments, and stay until the suite says otherwise."""
    suite = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=listen, args=(suite,), daemon=True).start()
    packets = suite.makefile("rb")
    try:
        while len(head := packets.read(5)) == 5:
            kind, size = struct.unpack(">cI", head)
            obey(kind, packets.read(size))
    except OSError:
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
