"""The process that a client under test starts as its sidecar: relays bytes between the client and the suite.

It runs as a script with the standard library alone. The suite sends packets of one letter, the size of the
payload in four bytes, and the payload: `o` writes to standard output, `e` to standard error, `c` closes
standard output, `d` makes the process ignore SIGTERM, `n` does nothing, `x` exits with the payload as status.
"""

import os
import signal
import socket
import struct
import sys
import threading


def forward_input(suite: socket.socket) -> None:
    """Forward the client's output to the suite until it ends."""
    try:
        while data := os.read(0, 65536):
            suite.sendall(data)
        suite.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def write(descriptor: int, data: bytes) -> None:
    """Write all data to a file descriptor."""
    while data:
        data = data[os.write(descriptor, data) :]


def carry_out(kind: bytes, payload: bytes) -> None:
    """Carry out one packet."""
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
    """Connect to the port given as argument, and carry out packets until the suite ends the process."""
    suite = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=forward_input, args=(suite,), daemon=True).start()
    packets = suite.makefile("rb")
    try:
        while len(head := packets.read(5)) == 5:
            kind, size = struct.unpack(">cI", head)
            carry_out(kind, packets.read(size))
    except OSError:
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
