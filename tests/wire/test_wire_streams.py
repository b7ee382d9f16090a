"""Standard streams other than pipes: files, a terminal, closed ones."""

import os
import pty
import select
import subprocess
import time
import tty
from pathlib import Path

import pytest

from tests.wire.harness import LIMIT_S, ServerProcess, Target, frame, notification, request


def test_input_and_output_may_be_files(target: Target, tmp_path: Path) -> None:
    source, sink = tmp_path / "input", tmp_path / "output"
    source.write_bytes(
        frame(request(1, "initialize", target.initialize)) + frame(request(2, target.ping, {}))
    )
    environment = {**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path)}
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        done = subprocess.run(target.command, stdin=stdin, stdout=stdout, env=environment, timeout=20)
    written = sink.read_bytes()
    assert done.returncode == 0
    assert written.count(b"Content-Length") == 2
    assert b'"id":2,"result"' in written


CLOSED = [("input", "<&-", b""), ("errors", "2>&-", b'"id":2,"result"'), ("output", ">&-", b"")]


@pytest.mark.parametrize(("name", "closing", "expected"), CLOSED, ids=[case[0] for case in CLOSED])
def test_a_standard_stream_may_be_closed(
    target: Target, tmp_path: Path, name: str, closing: str, expected: bytes
) -> None:
    data = frame(request(1, "initialize", target.initialize)) + frame(request(2, target.ping, {}))
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closing}', "sh", *target.command],
        input=data,
        capture_output=True,
        env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path)},
        timeout=20,
    )
    assert done.returncode == 0
    assert expected in done.stdout


def test_the_loudest_log_leaves_the_output_alone(target: Target) -> None:
    with ServerProcess((*target.command, "--log-level", "debug")) as server:
        server.initialize(target.initialize)
        server.say(request(1, target.ping, {}), notification("shutdown"), request(2, "shutdown"))
        server.send(frame(b"{"))
        server.say(notification("exit"))
        assert {message["id"] for message in server.rest() if "method" not in message} == {1, None, 2}
        assert server.exit_code() == 0
        assert "shutdown" in server.errors()


def test_a_log_that_nobody_reads_does_not_stop_the_server(target: Target, tmp_path: Path) -> None:
    unread, full = os.pipe()
    os.set_blocking(full, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(full, b"x" * 4096)
    os.set_blocking(full, True)
    data = frame(request(1, "initialize", target.initialize))
    data += frame(notification("shutdown")) * 100 + frame(request(2, target.ping, {}))
    done = subprocess.run(
        target.command,
        input=data,
        stdout=subprocess.PIPE,
        stderr=full,
        env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path)},
        timeout=20,
    )
    os.close(unread)
    os.close(full)
    assert done.returncode == 0
    assert b'"id":2,"result"' in done.stdout


def test_a_terminal_speaks_lines(target: Target, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    environment = {**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path)}
    server = subprocess.Popen(target.command, stdin=theirs, stdout=theirs, env=environment)
    try:
        os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"nothing/known"}\n')
        seen, deadline = b"", time.monotonic() + LIMIT_S
        while b"\n" not in seen:
            assert select.select([ours], [], [], deadline - time.monotonic())[0], "nothing came"
            seen += os.read(ours, 65536)
        assert b'"code":-32002' in seen
        server.terminate()
        assert server.wait(LIMIT_S) == 0
        assert os.get_blocking(theirs)
    finally:
        server.kill()
        server.wait()
        os.close(ours)
        os.close(theirs)
