"""A sidecar process with private pipes to its three standard streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sidecar.client.errors import SidecarNotStarted
from sidecar.rpc.stdio import Reader, open_reader

_DRAIN_S = 0.5
"""How long to wait for the rest of standard error after the process has ended, in seconds."""


class ChildProcess:
    """A child process; this object owns the descriptors of its pipes."""

    def __init__(
        self, process: asyncio.subprocess.Process, source: int, sink: int, stderr: StderrLines, error_end: int
    ) -> None:
        self.source = source
        """Descriptor to read the child's standard output from."""
        self.sink = sink
        """Descriptor to write the child's standard input to."""
        self._process = process
        self._stderr = stderr
        self._error_end = error_end
        self._ended = asyncio.create_task(process.wait(), name="sidecar-exit")
        self._closed = False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        on_stderr: Callable[[str], None],
        env: Mapping[str, str],
        cwd: str | Path | None,
        stderr_pause_s: float = 0,
    ) -> ChildProcess:
        """Start the program in its own process group, so that Ctrl-C reaches only the host.

        `stderr_pause_s` throttles standard error: one chunk is read in that many seconds.

        Raises:
            SidecarNotStarted: the program does not exist or cannot be run.
        """
        child_in, sink = os.pipe()
        source, child_out = os.pipe()
        error_end, child_err = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                env=env,
                cwd=cwd,
                process_group=0 if os.name == "posix" else None,
            )
        except (OSError, ValueError) as problem:
            _close(sink, source, error_end)
            reason = getattr(problem, "strerror", None) or str(problem)
            raise SidecarNotStarted(f"cannot start {command[0]}: {reason}") from problem
        except BaseException:
            _close(sink, source, error_end)
            raise
        finally:
            _close(child_in, child_out, child_err)
        return cls(
            process, source, sink, StderrLines(error_end, on_stderr, pause_s=stderr_pause_s), error_end
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; `None` while the process runs."""
        return self._process.returncode

    @property
    def last_stderr(self) -> list[str]:
        """The newest lines of standard error."""
        return list(self._stderr.last)

    async def wait(self, limit_s: float | None = None) -> int | None:
        """Wait for the exit code; `None` if the process still runs after `limit_s` seconds."""
        done, _ = await asyncio.wait((self._ended,), timeout=limit_s)
        if not done:
            return None
        await self._stderr.drain(_DRAIN_S)
        return self._ended.result()

    def terminate(self) -> None:
        """Send SIGTERM."""
        with contextlib.suppress(ProcessLookupError):
            if self.exit_code is None:
                self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            if self.exit_code is None:
                self._process.kill()

    def kill_group(self) -> None:
        """Send SIGKILL to the process and the rest of its process group."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.kill()

    def close(self) -> None:
        """Release the descriptors; the process must have ended, or be about to."""
        if not self._closed:
            self._closed = True
            self._stderr.close()
            self._ended.cancel()
            _close(self.source, self.sink, self._error_end)


def _close(*descriptors: int) -> None:
    for fd in descriptors:
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


KEPT_LINES = 20
"""Number of newest lines kept for the error message if the child ends."""
LONGEST_LINE = 4096
"""Length in bytes above which a line is passed on in pieces."""


class StderrLines:
    """Reads a descriptor to its end, so that the child never blocks on a full pipe."""

    def __init__(self, fd: int, take_line: Callable[[str], None], *, pause_s: float = 0) -> None:
        """`pause_s` is the pause after each chunk in seconds, which throttles a flood of output."""
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        """The newest lines, without their line ends."""
        self._take_line = take_line
        self._rest = b""
        self._ended = asyncio.Event()
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._pausing: asyncio.TimerHandle | None = None
        self._reader: Reader = open_reader(self._loop, fd, self._take)

    async def drain(self, limit_s: float) -> None:
        """Wait for the end of the stream, `limit_s` seconds at most."""
        try:
            await asyncio.wait_for(self._ended.wait(), limit_s)
        except TimeoutError:
            return

    def close(self) -> None:
        """Stop reading, and pass on an unfinished last line."""
        self._reader.pause()
        if self._pausing is not None:
            self._pausing.cancel()
        self._end()

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            self._end()
            return
        if self._pause_s:
            self._reader.pause()
            self._pausing = self._loop.call_later(self._pause_s, self._reader.resume)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(self._rest) > LONGEST_LINE:
            self._emit(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]

    def _end(self) -> None:
        if self._rest:
            self._emit(self._rest)
            self._rest = b""
        self._ended.set()

    def _emit(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.last.append(text)
        self._take_line(text)
