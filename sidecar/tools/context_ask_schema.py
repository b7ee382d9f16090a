"""How `context_ask` is described to the model."""

from __future__ import annotations

TOKENS, LEAST_TOKENS, MOST_TOKENS = 24_000, 2_000, 200_000
STEPS, MOST_STEPS = 4, 8

DESCRIPTION = """\
Answers a question about this conversation from all of its messages, also those that you see only as a \
summary or not at all. A model searches and reads for you within a budget; every statement of the answer \
names the messages that it rests on, and statements that no message bears out are left out. Use it for \
questions that take several searches; for a name, an id or an exact text context_search and context_grep \
are quicker.

context_expand shows the named messages word for word."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "description": "What you want to know."},
        "first": {"type": "integer", "minimum": 1, "description": "Number of the first message to look at."},
        "last": {"type": "integer", "minimum": 1, "description": "Number of the last message to look at."},
        "since": {"type": "string", "minLength": 1, "description": "Only messages of this time or later."},
        "until": {"type": "string", "minLength": 1, "description": "Only messages of this time or earlier."},
        "tokens": {
            "type": "integer",
            "minimum": 1,
            "description": f"Tokens to spend on it at most, read or written ({TOKENS} if left out).",
        },
        "steps": {
            "type": "integer",
            "minimum": 1,
            "description": f"Times that the model may be asked ({STEPS} if left out, {MOST_STEPS} at most).",
        },
    },
    "required": ["question"],
}
