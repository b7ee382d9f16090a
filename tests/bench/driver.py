"""One client for every server: prepared frames over real pipes, and the scheduler's counters."""

import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

LIMIT_S = 120.0


def frame(body: dict[str, Any]) -> bytes:
    """A message behind its header."""
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


class Sample(NamedTuple):
    """One run of one server."""

    cpu_us: float
    """Processor time of the server, all threads, in microseconds."""
    wall_us: float
    median_us: float
    """Median time of one exchange, in microseconds."""


class Driven:
    """A server process and its pipes."""

    def __init__(self, command: Sequence[str], marker: bytes, env: dict[str, str] | None = None) -> None:
        self.marker = marker
        """Occurs once in each answer and nowhere else."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._sink = self._process.stdin.fileno()
        self._source = self._process.stdout.fileno()

    def cpu_us(self) -> float:
        """Processor time used so far, in microseconds."""
        tasks = Path(f"/proc/{self._process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1000

    def peak_mb(self) -> float:
        """Largest resident memory so far, in MB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the kernel does not tell the peak memory")

    def exchange(self, data: bytes, count: int) -> list[bytes]:
        """Send everything, read until `count` answers have come; returns the chunks."""
        deadline = time.monotonic() + LIMIT_S
        os.set_blocking(self._sink, False)
        view, chunks, seen, tail = memoryview(data), [], 0, b""
        while view or seen < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{seen} of {count} answers came")
            readable, writable, _ = select.select([self._source], [self._sink] if view else [], [], 1.0)
            if writable:
                view = view[os.write(self._sink, view) :]
            if readable:
                chunk = os.read(self._source, 65536)
                if not chunk:
                    raise RuntimeError("the server has ended")
                chunks.append(chunk)
                seen += (tail + chunk).count(self.marker)
                tail = chunk[1 - len(self.marker) :]
        missing = _missing(b"".join(chunks))
        while missing > 0:
            chunk = os.read(self._source, 65536)
            if not chunk:
                raise RuntimeError("the server has ended")
            chunks.append(chunk)
            missing -= len(chunk)
        return chunks

    def one(self, data: bytes) -> bytes:
        """Send one small request and read its answer."""
        os.write(self._sink, data)
        answer = b""
        while self.marker not in answer:
            chunk = os.read(self._source, 65536)
            if not chunk:
                raise RuntimeError("the server has ended")
            answer += chunk
        return answer

    def run(self, frames: Sequence[bytes], in_flight: int) -> Sample:
        """Send all frames, so many at a time; every answer is checked after the clock has stopped."""
        groups = [frames[start : start + in_flight] for start in range(0, len(frames), in_flight)]
        joined = [b"".join(group) for group in groups]
        chunks: list[bytes] = []
        times: list[float] = []
        cpu = self.cpu_us()
        begin = time.perf_counter()
        for group, data in zip(groups, joined, strict=True):
            start = time.perf_counter()
            if in_flight == 1:
                chunks.append(self.one(data))
            else:
                chunks += self.exchange(data, len(group))
            times.append(time.perf_counter() - start)
        wall = time.perf_counter() - begin
        cpu = self.cpu_us() - cpu
        _check(b"".join(chunks), len(frames))
        return Sample(cpu, wall * 1e6, sorted(times)[len(times) // 2] * 1e6)

    def stop(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _missing(output: bytes) -> int:
    """Bytes that the last answer still lacks."""
    start = output.rfind(b"Content-Length: ")
    end = output.index(b"\r\n\r\n", start)
    return end + 4 + int(output[start + 16 : end]) - len(output)


def _check(output: bytes, count: int) -> None:
    ids: set[object] = set()
    while output:
        head, _, rest = output.partition(b"\r\n\r\n")
        size = int(head.rpartition(b":")[2])
        message = json.loads(rest[:size])
        output = rest[size:]
        if "error" in message:
            raise RuntimeError(f"an answer is an error: {message['error']}")
        if "id" in message:
            ids.add(message["id"])
    if len(ids) != count:
        raise RuntimeError(f"{len(ids)} different answers to {count} requests")
