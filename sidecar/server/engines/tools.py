"""The tools of engines: which are offered, the model they may ask, and checks of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import DecodeError, json, structs

from sidecar.rpc.errors import RpcError
from sidecar.server.engines.answer_checks import NonsenseAnswer
from sidecar.tools.contract import ToolModel, ToolOutcome

if TYPE_CHECKING:
    from sidecar.rpc.router import Call
    from sidecar.server.engines.host import Models
    from sidecar.server.engines.instance import EngineInstance
    from sidecar.server.profile import Host
    from sidecar.tools.contract import AgentTool


_BUILT_IN = "sidecar.tools."
_ASK = "sidecar.tools.context_ask:ContextAsk"
"""The one built-in tool that asks a model."""

LONGEST_TEXT = 16_000
"""Characters of an answer beyond which the rest is left out."""
CLOSING = "\n--- {count} more characters are left out: ask for less ---"


class ModelUnavailable(Exception):
    """Raised when a tool may not ask, or gets no answer; the text tells the model what happened."""


def needs_model(tool: AgentTool) -> bool:
    """Whether a tool is of no use without a model."""
    return bool(getattr(tool, "needs_model", False))


def offered(instance: EngineInstance, models: Models) -> list[str]:
    """The names of an engine's tools, without those that are of no use where there is no model to ask."""
    if models.exist:
        return list(instance.engine.tools)
    return [
        name for name, target in instance.engine.tools.items() if not _needs_model(instance, name, target)
    ]


def _needs_model(instance: EngineInstance, name: str, target: str) -> bool:
    own = instance.own_tools.get(name)
    if own is not None:
        return needs_model(own)
    if target.startswith(_BUILT_IN):
        # Loading them is left to the first call: the handshake is to be quick.
        return target == _ASK
    from sidecar.engine.loading import EngineNotLoadable, import_target

    try:
        return bool(getattr(import_target(target), "needs_model", False))
    except EngineNotLoadable:
        return False


def tool_model(host: Host, models: Models, call: Call, session_id: str) -> ToolModel | None:
    """The configured model, else the host's, `None` where there is neither."""
    if not models.exist:
        return None

    async def ask(messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int) -> str:
        call.release_lane()  # the tool reads a snapshot
        if (endpoint := models.endpoint) is not None:
            return await endpoint("query", messages, system_prompt, max_tokens)
        return await _ask_host(host, models, session_id, messages, system_prompt, max_tokens)

    return ToolModel(ask, models.counter.count)


async def _ask_host(
    host: Host,
    models: Models,
    session_id: str,
    messages: Sequence[tuple[str, str]],
    system_prompt: str,
    max_tokens: int,
) -> str:
    from sidecar.protocol.runtime import CompleteRuntimeParams, CompleteRuntimeResult, PromptMessage
    from sidecar.summarize.host_model import SECONDS_FOR_A_CALL

    guard, breaker = models.bounds
    if not breaker.allows():
        raise ModelUnavailable("calls to the model are paused after several failures")
    if not guard.take():
        raise ModelUnavailable("the limit on calls is reached")
    params = CompleteRuntimeParams(
        purpose="query",
        messages=[PromptMessage(role=cast(Any, role), content=text) for role, text in messages],
        system_prompt=system_prompt,
        max_tokens=max_tokens,
        session_id=session_id,
    )
    try:
        async with asyncio.timeout(SECONDS_FOR_A_CALL):
            answer = await host.ask("runtime/complete", params, CompleteRuntimeResult)
    except TimeoutError:
        breaker.failed()
        raise ModelUnavailable(f"no answer within {SECONDS_FOR_A_CALL:g} s") from None
    except RpcError as error:
        breaker.failed()
        raise ModelUnavailable(error.message) from error
    breaker.succeeded()
    return answer.text


def checked_outcome(outcome: object) -> ToolOutcome:
    """The outcome, if it is one, with a text that may be sent.

    Raises:
        NonsenseAnswer: it is none, or its structured part is no JSON object.
    """
    if not isinstance(outcome, ToolOutcome) or not isinstance(cast(object, outcome.text), str):
        raise NonsenseAnswer(f"the tool answered a {type(outcome).__name__}, no ToolOutcome with a text")
    if outcome.structured is not None:
        try:
            json.decode(outcome.structured, type=dict[str, Any])
        except (DecodeError, RecursionError, TypeError):
            raise NonsenseAnswer("the structured answer of the tool is no JSON object") from None
    text = outcome.text.encode("utf-8", "replace").decode()
    return outcome if text == outcome.text and len(text) <= LONGEST_TEXT else _sendable(outcome, text)


def _sendable(outcome: ToolOutcome, text: str) -> ToolOutcome:
    if len(text) > LONGEST_TEXT:
        room = LONGEST_TEXT - len(CLOSING) - 10
        text = text[:room] + CLOSING.format(count=len(text) - room)
    return structs.replace(outcome, text=text)
