"""The APIs of model providers on loopback: strict about what they are sent, scripted in what they answer."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from aiohttp import web

from tests.loopback_server import LoopbackServer
from tests.provider_rules import Body, chat_faults, message_faults, response_faults


class Use(NamedTuple):
    """A call of a tool that the model makes."""

    id: str
    name: str
    arguments: Body


Script = Callable[[Body, int], "web.StreamResponse | Use | str | None"]
"""From a body and its number: what to say, a whole response, or `None` to break off in the stream."""


class Count(NamedTuple):
    """Tokens of a prompt."""

    prompt: int
    cached: int
    """Those of the longest beginning that an earlier prompt had."""


class ModelApis(LoopbackServer):
    """Messages, Responses and Chat Completions; every request is kept as it came."""

    def __init__(self, script: Script | None = None) -> None:
        super().__init__()
        self.script: Script = script or (lambda _body, number: f"answer {number}")
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        """What a provider would have refused."""
        self.counted: list[Count] = []
        """Tokens of every prompt, as the answers report them."""
        self._prompts: list[list[int]] = []

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Name what answers to which path."""
        router.add_route("*", "/{path:.*}", self._answer)

    @property
    def requests(self) -> list[Body]:
        """The bodies, decoded."""
        return [msgspec.json.decode(body) for body in self.bodies]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        if request.method != "POST" or not raw:
            return web.json_response({"path": request.path_qs, "method": request.method})
        try:
            body: Body = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            return web.json_response({"error": {"message": "no JSON"}}, status=400)
        self.bodies.append(raw)
        self.headers.append(dict(request.headers))
        judge = {"/v1/messages": message_faults, "/v1/responses": response_faults}.get(
            request.path, chat_faults
        )
        self.faults += [f"request {len(self.bodies)}: {fault}" for fault in judge(body)]
        self.counted.append(count := self._count(body))
        said = self.script(body, len(self.bodies))
        if isinstance(said, web.StreamResponse):
            return said
        if not body.get("stream") and said is not None and request.path == "/v1/chat/completions":
            return web.json_response(_completion(said, count, len(self.bodies)))
        events = {"/v1/messages": _message_events, "/v1/responses": _response_events}.get(
            request.path, _chunks
        )
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for event in events(said or "cut", count, len(self.bodies)):
            await answer.write(event)
            if said is None:
                assert request.transport is not None
                request.transport.abort()
                break
        return answer

    def _count(self, body: Body) -> Count:
        prompt = [
            hash(msgspec.json.encode(part))
            for part in (body.get("tools"), body.get("system"), body.get("instructions"), *_history(body))
        ]
        common = [_beginning(prompt, known) for known in self._prompts]
        self._prompts.append(prompt)
        tokens, most = prompt_tokens(body), max(common, default=0)
        if most < 3:
            return Count(tokens, 0)
        name = "input" if "input" in body else "messages"
        return Count(tokens, prompt_tokens({**body, name: body[name][: most - 3]}))


def _beginning(prompt: Sequence[int], known: Sequence[int]) -> int:
    """How many parts both have at their beginning."""
    places = range(min(len(prompt), len(known)))
    return next((place for place in places if prompt[place] != known[place]), len(places))


def _history(body: Body) -> list[Body]:
    if "input" in body:
        return body["input"] if isinstance(body["input"], list) else []
    return list(map(bare, body["messages"])) if "system" in body else body["messages"]


def prompt_tokens(body: Body) -> int:
    """A count that is close to a tokenizer's for English text."""
    parts = [body.get(name) for name in ("messages", "input", "system", "instructions", "tools")]
    return sum(len(msgspec.json.encode(part)) for part in parts if part) // 5


def bare(message: Body) -> Body:
    """A message of the Messages API as the provider's cache knows it: markers are no part of it."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kept = [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]
    return {"role": message["role"], "content": kept}


def _sse(events: Sequence[Body]) -> Iterator[bytes]:
    for event in events:
        yield f"event: {event['type']}\ndata: {msgspec.json.encode(event).decode()}\n\n".encode()


def _message_events(said: str | Use, count: Count, number: int) -> Iterator[bytes]:
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": count.prompt - count.cached, "output_tokens": 1}
    usage["cache_read_input_tokens"] = count.cached
    block: Body = {"type": "text", "text": ""}
    delta: Body = {"type": "text_delta", "text": said}
    if isinstance(said, Use):
        block = {"type": "tool_use", "id": said.id, "name": said.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": msgspec.json.encode(said.arguments).decode()}
    stop = {"stop_reason": "tool_use" if isinstance(said, Use) else "end_turn", "stop_sequence": None}
    return _sse(
        [
            {"type": "message_start", "message": {**start, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    )


def _response_events(said: str | Use, count: Count, number: int) -> Iterator[bytes]:
    content = [{"type": "output_text", "text": said}]
    item: Body = {"type": "message", "id": f"m{number}", "role": "assistant", "content": content}
    if isinstance(said, Use):
        arguments = msgspec.json.encode(said.arguments).decode()
        item = {"type": "function_call", "name": said.name, "arguments": arguments, "call_id": said.id}
    usage: Body = {"input_tokens": count.prompt, "output_tokens": 5, "total_tokens": count.prompt + 5}
    usage["input_tokens_details"] = {"cached_tokens": count.cached}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    response: Body = {"id": f"r{number}", "object": "response", "created_at": 0, "model": "m", "output": []}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    return _sse(
        [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
    )


def _completion(said: str | Use, count: Count, number: int) -> Body:
    message: Body = {"role": "assistant", "content": said}
    if isinstance(said, Use):
        function = {"name": said.name, "arguments": msgspec.json.encode(said.arguments).decode()}
        calls = [{"id": said.id, "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    known = {"id": f"chat-{number}", "object": "chat.completion", "created": 0, "model": "m"}
    return {**known, "choices": [choice], "usage": _chat_usage(count)}


def _chunks(said: str | Use, count: Count, number: int) -> Iterator[bytes]:
    delta: Body = {"content": said}
    reason = "tool_calls" if isinstance(said, Use) else "stop"
    if isinstance(said, Use):
        function = {"name": said.name, "arguments": msgspec.json.encode(said.arguments).decode()}
        delta = {"tool_calls": [{"index": 0, "id": said.id, "type": "function", "function": function}]}
    for chunk in (
        {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": _chat_usage(count)},
    ):
        yield f"data: {msgspec.json.encode({'id': f'chat-{number}', **chunk}).decode()}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _chat_usage(count: Count) -> Body:
    usage: Body = {"prompt_tokens": count.prompt, "completion_tokens": 5, "total_tokens": count.prompt + 5}
    return usage | {"prompt_tokens_details": {"cached_tokens": count.cached}}
