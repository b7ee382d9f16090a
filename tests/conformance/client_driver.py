"""The driver around the Python client, as `spec/checking-clients.md` describes drivers."""

import asyncio
import json
import os
import sys
from typing import Any

import msgspec

from sidecar.client import (
    ClientClosed,
    RequestCancelled,
    RequestFailed,
    RequestTimedOut,
    SidecarClient,
    SidecarExited,
    SidecarNotStarted,
)
from sidecar.protocol.memory import GetContextMemoryResult
from sidecar.protocol.methods import METHODS
from sidecar.protocol.runtime import CompleteRuntimeResult

KINDS = {
    RequestCancelled: "cancelled",
    RequestTimedOut: "timeout",
    SidecarExited: "lost",
    SidecarNotStarted: "lost",
    ClientClosed: "closed",
    asyncio.CancelledError: "cancelled",
}


def tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def encoded(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def result_type(name: str) -> Any:
    method = next((method for method in METHODS if method.name == name), None)
    return method.load(method.result) if method and method.result else object


def failure(error: BaseException) -> dict[str, Any]:
    kind = next((kind for known, kind in KINDS.items() if isinstance(error, known)), None)
    if kind is None and isinstance(error, RequestFailed):
        data = None if error.data is None else json.loads(msgspec.json.encode(error.data))
        return {"kind": "answer", "code": error.code, "message": str(error), "data": data}
    return {"kind": kind or "other", "message": f"{type(error).__name__}: {error}"}


class Driver:
    """Does what the lines say, each in a task of its own."""

    def __init__(self) -> None:
        self.client: SidecarClient | None = None
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def take(self, line: dict[str, Any]) -> None:
        if line["do"] == "cancel":
            self.tasks[line["target"]].cancel()
        else:
            self.tasks[line["id"]] = asyncio.create_task(self.carry_out(line))

    async def carry_out(self, line: dict[str, Any]) -> None:
        try:
            tell({"id": line["id"], "result": await getattr(self, line["do"])(line)})
        except (Exception, asyncio.CancelledError) as error:
            tell({"id": line["id"], "failure": failure(error)})

    async def open(self, line: dict[str, Any]) -> None:
        callbacks: dict[str, Any] = {
            "on_session_changed": lambda params: heard("session/changed", params),
            "on_progress": lambda params: heard("$/progress", params),
        }
        answers = {method: Answer(answer) for method, answer in line.get("answers", {}).items()}
        if (complete := answers.get("runtime/complete")) is not None:
            callbacks["on_complete"] = lambda _: complete.given(CompleteRuntimeResult)
        if (remember := answers.get("memory/getContext")) is not None:
            callbacks["on_memory_context"] = lambda _: remember.given(GetContextMemoryResult)
        if self.client is not None:
            await self.client.close()
        command = json.loads(os.environ["CEP_SIDECAR"])
        self.client = SidecarClient.start(
            command, host="driver", deltas=line.get("deltas", False), **callbacks
        )
        await self.client.open()
        for name in line.get("sources", ()):
            await self.client.register_memory(name, ["per-message"])

    async def request(self, line: dict[str, Any]) -> object:
        assert self.client is not None
        timeout_s = line["timeoutMs"] / 1000 if "timeoutMs" in line else None
        kind = result_type(line["method"])
        return encoded(await self.client.request(line["method"], line["params"], kind, timeout_s=timeout_s))

    async def assemble(self, line: dict[str, Any]) -> object:
        assert self.client is not None
        params = line["params"]
        answer = await self.client.assemble(params["sessionId"], params.get("tokenBudget"))
        return encoded(answer)

    async def close(self, _: dict[str, Any]) -> None:
        if self.client is not None:
            await self.client.close()


def heard(method: str, params: Any) -> None:
    tell({"heard": method, "params": encoded(params)})


class Answer:
    """What the runtime answers to a request of the server; `together` says how many it waits for first."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.asked = 0
        self.enough = asyncio.Event()

    async def given(self, kind: Any) -> Any:
        self.asked += 1
        if self.asked >= self.answer.get("together", 1):
            self.enough.set()
        await self.enough.wait()
        if "never" in self.answer:
            await asyncio.Event().wait()
        if "error" in self.answer:
            raise RuntimeError(self.answer["error"])
        return msgspec.convert(self.answer["result"], kind)


async def main() -> None:
    driver = Driver()
    tell(
        {
            "ready": [
                "cancelling",
                "timeouts",
                "deltas",
                "notifications",
                "progress",
                "runtime/complete",
                "memory/getContext",
            ]
        }
    )
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        driver.take(json.loads(line))
    if driver.client is not None:
        await driver.client.close()


if __name__ == "__main__":
    asyncio.run(main())
