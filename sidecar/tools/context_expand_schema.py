"""How `context_expand` is described to the model."""

from __future__ import annotations

DESCRIPTION = """\
Shows messages of this conversation word for word, also those that you see only as a summary, or of \
which you see only a part. Say which ones by any of the arguments; several narrow it down together.

- `node` is the id of a summary, as in its heading: the messages that it stands for.
- `first` and `last` are numbers of messages, counted from 1.
- `messageId` is the id of one message, as a reference to something that was left out names it.
- `since` and `until` are times such as 2024-01-15T10:30:00Z.
- `tool` is the name of a tool: its calls and their results.

Long answers come in pages: the last line has a `cursor`; call again with the same arguments and that \
cursor."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "node": {"type": "string", "minLength": 1, "description": "Id of a summary."},
        "first": {"type": "integer", "minimum": 1, "description": "Number of the first message."},
        "last": {"type": "integer", "minimum": 1, "description": "Number of the last message."},
        "messageId": {"type": "string", "minLength": 1, "description": "Id of one message."},
        "since": {"type": "string", "minLength": 1, "description": "Only messages of this time or later."},
        "until": {"type": "string", "minLength": 1, "description": "Only messages of this time or earlier."},
        "tool": {"type": "string", "minLength": 1, "description": "Only calls and results of this tool."},
        "form": {
            "type": "string",
            "enum": ["text", "json"],
            "description": '"text" (if left out) is what the messages say; "json" is every byte as it was '
            "stored, images included.",
        },
        "cursor": {
            "type": "string",
            "minLength": 1,
            "description": "Where to go on, from the last line of the page before.",
        },
    },
}
