"""An agent on Anthropic's Python SDK, with streamed answers. It keeps its whole history."""

import sys

from anthropic import Anthropic

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
TOOL = {
    "name": "read_page",
    "description": "Read one page of the report.",
    "input_schema": {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]},
}


def read_page(page: int) -> str:
    """A page of some 800 tokens."""
    return f"Page {page}. " + " ".join(f"Row {page}.{row} has {row * page} units." for row in range(90))


client = Anthropic()
history = [{"role": "user", "content": f"Read {STEPS} pages and say what you found."}]
while True:
    with client.messages.stream(
        model="claude-sonnet-4-5",
        max_tokens=1000,
        system="You audit reports.",
        messages=history,
        tools=[TOOL],
    ) as stream:
        answer = stream.get_final_message()
    history.append(
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}
    )
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": read_page(**block.input)}
        for block in answer.content
        if block.type == "tool_use"
    ]
    if not results:
        break
    history.append({"role": "user", "content": results})
print("".join(block.text for block in answer.content if block.type == "text"))
