"""The model that a tool may ask, within the bounds on calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from sidecar.rpc.errors import RpcError
from sidecar.tools.contract import ToolModel

if TYPE_CHECKING:
    from sidecar.rpc.call import Call
    from sidecar.server.sidecar import Sidecar
    from sidecar.tools.contract import AgentTool


class ModelUnavailable(Exception):
    """Raised when a tool may not ask, or gets no answer; the text tells the model what happened."""


def needs_model(tool: AgentTool) -> bool:
    """Whether a tool is of no use without a model."""
    return bool(getattr(tool, "needs_model", False))


def tool_model(sidecar: Sidecar, call: Call, session_id: str) -> ToolModel | None:
    """The configured model, else the host's, `None` where there is neither."""
    if not sidecar.models.exist:
        return None

    async def ask(messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int) -> str:
        call.release_lane()  # the tool reads a snapshot
        if (endpoint := sidecar.models.endpoint) is not None:
            return await endpoint("query", messages, system_prompt, max_tokens)
        return await _ask_host(sidecar, session_id, messages, system_prompt, max_tokens)

    return ToolModel(ask, sidecar.counter.count)


async def _ask_host(
    sidecar: Sidecar,
    session_id: str,
    messages: Sequence[tuple[str, str]],
    system_prompt: str,
    max_tokens: int,
) -> str:
    from sidecar.protocol.runtime import CompleteRuntimeParams, CompleteRuntimeResult, PromptMessage
    from sidecar.summarize.host_model import SECONDS_FOR_A_CALL

    guard, breaker = sidecar.models.bounds
    if not breaker.allows():
        raise ModelUnavailable("the model is left alone for a while after several failures")
    if not guard.take():
        raise ModelUnavailable("the calls for this while are spent")
    params = CompleteRuntimeParams(
        purpose="query",
        messages=[PromptMessage(role=cast(Any, role), content=text) for role, text in messages],
        system_prompt=system_prompt,
        max_tokens=max_tokens,
        session_id=session_id,
    )
    try:
        async with asyncio.timeout(SECONDS_FOR_A_CALL):
            answer = await sidecar.ask_host("runtime/complete", params, CompleteRuntimeResult)
    except TimeoutError:
        breaker.failed()
        raise ModelUnavailable(f"no answer within {SECONDS_FOR_A_CALL:g} s") from None
    except RpcError as error:
        breaker.failed()
        raise ModelUnavailable(error.message) from error
    breaker.succeeded()
    return answer.text
