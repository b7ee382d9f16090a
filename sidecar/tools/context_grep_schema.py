"""How `context_grep` is described to the model."""

from __future__ import annotations

DESCRIPTION = """\
Finds every message of this conversation that matches a pattern, also those that you see only as a \
summary: what was written, which tools were called with what input, and what they gave. Matches are \
grouped by the summary that stands for them, and the first line says whether all messages were searched \
or there are more matches.

- `kind` "regex" (if left out) takes an expression of RE2 (put (?i) in front for any case), "literal" a \
text as it is in any case, "words" words in any order, best matches first.
- `first`, `last`, `since`, `until` and `tool` narrow it down.

context_expand shows what stands around a match, word for word."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "What to look for."},
        "kind": {
            "type": "string",
            "enum": ["regex", "literal", "words"],
            "description": "How the pattern is meant.",
        },
        "first": {"type": "integer", "minimum": 1, "description": "Number of the first message to search."},
        "last": {"type": "integer", "minimum": 1, "description": "Number of the last message to search."},
        "since": {"type": "string", "minLength": 1, "description": "Only messages of this time or later."},
        "until": {"type": "string", "minLength": 1, "description": "Only messages of this time or earlier."},
        "tool": {"type": "string", "minLength": 1, "description": "Only messages that name this tool."},
        "limit": {"type": "integer", "minimum": 1, "description": "Most matches to show (20 if left out)."},
        "order": {
            "type": "string",
            "enum": ["newest", "oldest"],
            "description": 'Which matches come first (newest if left out); "words" shows the best first.',
        },
        "cursor": {
            "type": "string",
            "minLength": 1,
            "description": "Where to go on, from the last line of the answer before.",
        },
    },
    "required": ["pattern"],
}
