"""How `context_search` is described to the model."""

from __future__ import annotations

DESCRIPTION = """\
Looks up what was said and done earlier in this conversation, including everything that you do not see any \
more. It covers what the user and you wrote, which tools were called with what input, and what they gave.

Choose a mode:
- "search" finds every message that contains `query`, character for character (upper and lower case are the \
same), and shows the messages around it. Best for names, ids, paths, error texts, quotes.
- "relevant" finds the messages that fit a question best; put the question into `query`, in your own words. \
Best when you do not know the wording.
- "turn" shows a whole turn; `turnId` is an id such as "t7", as in the activity log and in earlier results.
- "tail" shows the newest `last` messages, "head" the oldest `first` messages.

Messages are numbered from 1 and shown as [role turn] text. Long answers are cut, and say so at the end."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "mode": {
            "type": "string",
            "enum": ["search", "relevant", "turn", "tail", "head"],
            "description": "How to look it up.",
        },
        "query": {
            "type": "string",
            "minLength": 1,
            "description": 'Needed for "search": the text to find. Needed for "relevant": the question.',
        },
        "turnId": {
            "type": "string",
            "minLength": 1,
            "description": 'Needed for "turn": the turn to show, such as "t7".',
        },
        "before": {
            "type": "integer",
            "minimum": 0,
            "description": '"search": messages to show before each match (2 if left out). '
            '"turn": turns to show before it (0 if left out).',
        },
        "after": {
            "type": "integer",
            "minimum": 0,
            "description": '"search": messages to show after each match (2 if left out). '
            '"turn": turns to show after it (0 if left out).',
        },
        "last": {
            "type": "integer",
            "minimum": 1,
            "description": '"tail": how many messages (10 if left out).',
        },
        "first": {
            "type": "integer",
            "minimum": 1,
            "description": '"head": how many messages (10 if left out).',
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": '"relevant": most messages to show (10 if left out).',
        },
    },
    "required": ["mode"],
}
