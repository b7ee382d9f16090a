"""Tools of an engine that runs in a process of its own, called from the sidecar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec import DecodeError, json

from sidecar.server.isolation.process import ProcessFailed
from sidecar.tools.contract import AgentTool, ArgumentError, ToolFailed, ToolOutcome, ToolSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidecar.server.isolation.remote import RemoteEngine
    from sidecar.server.isolation.wire import OwnTool


class RemoteTool:
    """One tool; see `sidecar.tools.contract.AgentTool`. It runs in the engine's process."""

    name: str
    description: str
    input_schema: bytes
    needs_model: bool

    def __init__(self, engine: RemoteEngine, told: OwnTool) -> None:
        self._engine = engine
        self.name = told.name
        self.description = told.description
        self.input_schema = told.input_schema.encode()
        self.needs_model = told.needs_model

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """What the tool answers.

        Raises:
            ArgumentError: the arguments do not fit.
            ToolFailed: it cannot do what was asked.
        """
        answer = await self._engine.call_tool(self.name, session, arguments)
        if answer.argument is not None:
            raise _argument_error(answer.text, answer.argument)
        if answer.failed:
            raise ToolFailed(answer.text)
        return ToolOutcome(answer.text, answer.structured)


def remote_tools(engine: RemoteEngine, told: list[OwnTool]) -> Mapping[str, AgentTool]:
    """The tools by name.

    Raises:
        ProcessFailed: a schema is no JSON object.
    """
    for tool in told:
        try:
            json.decode(tool.input_schema, type=dict[str, Any])
        except (DecodeError, RecursionError):
            raise ProcessFailed(
                f"the input_schema of the tool {tool.name[:100]!r} is no JSON object"
            ) from None
    return {tool.name: cast("AgentTool", RemoteTool(engine, tool)) for tool in told}


def _argument_error(text: str, argument: str) -> ArgumentError:
    error = ArgumentError(text)
    error.argument = argument
    return error
