"""An agent on OpenAI's Python SDK. It reads a file of numbers in steps and keeps its whole history."""

import json
import sys

from openai import OpenAI

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
TOOL = {
    "type": "function",
    "function": {
        "name": "read_page",
        "description": "Read one page of the report.",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]},
    },
}


def read_page(page: int) -> str:
    """A page of some 800 tokens."""
    return f"Page {page}. " + " ".join(f"Row {page}.{row} has {row * page} units." for row in range(90))


client = OpenAI()
history = [
    {"role": "system", "content": "You audit reports page by page."},
    {"role": "user", "content": f"Read {STEPS} pages and say what you found."},
]
while True:
    answer = client.chat.completions.create(model="gpt-4o", messages=history, tools=[TOOL], max_tokens=1000)
    message = answer.choices[0].message
    history.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        result = read_page(**json.loads(call.function.arguments))
        history.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)
