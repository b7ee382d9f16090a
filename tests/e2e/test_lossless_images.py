"""Images in large tool results stand as references, stay stored once, and can be read back byte for byte."""

import base64
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import problems

LARGE = {"plugins": {"entries": {"lossless": {"config": {"payloadTokens": 1500}}}}}
PICTURES = [base64.b64encode(Random(seed).randbytes(30_000)).decode() for seed in range(4)]
TEXT = "the pages of the report, OPS-4711\n" * 300


def part(dialect: str, data: str) -> dict[str, Any]:
    """An image in the content of a tool result."""
    match dialect:
        case "anthropic":
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        case "openai-responses":
            return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
        case "openclaw":
            return {"type": "image", "data": data, "mimeType": "image/png"}
        case _:
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def turn_with_pictures(dialect: str) -> list[bytes]:
    """A question, a call, and a result with a text and images."""
    speaker = Speaker(dialect)
    call = speaker.new_call()
    asked = [speaker.user("Show me."), *speaker.assistant("", [call])]
    [raw] = speaker.results([(call, TEXT)])
    result = json.loads(raw)
    kind = "input_text" if dialect == "openai-responses" else "text"
    parts = [{"type": kind, "text": TEXT}, *(part(dialect, data) for data in PICTURES)]
    match dialect:
        case "anthropic":
            result["content"][0]["content"] = parts
        case "openai-responses":
            result["output"] = parts
        case _:
            result["content"] = parts
    return [*asked, json.dumps(result).encode()]


def read_back(host: AgentHost, message_id: str) -> str:
    """The stored JSON of a message, page by page."""
    read, cursor = "", {}
    while True:
        arguments = {"messageId": message_id, "form": "json", **cursor}
        page = host.call("tools/call", sessionId="s", name="context_expand", arguments=arguments)
        told = page["structuredContent"]
        read += "".join(piece["text"] for piece in told["messages"])
        if "nextCursor" not in told:
            return read
        cursor = {"cursor": told["nextCursor"]}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_images_of_a_large_result_are_told_of_and_read_back(dialect: str, tmp_path: Path) -> None:
    messages = turn_with_pictures(dialect)
    with AgentHost(tmp_path, dialect=dialect, engine="lossless", config=LARGE) as host:
        ids = host.ingest("s", *messages)
        answer = host.assemble("s", tokenBudget=100_000)
        assert not problems(dialect, answer.messages)
        shown = answer.raw[-1].decode()
        assert not any(data[:200] in shown for data in PICTURES)
        assert shown.count("image, 30000 bytes") == len(PICTURES) and ids[-1] in shown
        assert read_back(host, ids[-1]).encode() == messages[-1]
        assert host.assemble("s", tokenBudget=100_000).raw == answer.raw
    kept = sum(path.read_bytes().count(PICTURES[0][:200].encode()) for path in tmp_path.glob("*.db*"))
    assert kept <= 2, "in the file, and in its log until that is written into it"
