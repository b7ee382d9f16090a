"""Says what one message costs in a provider's context window."""

from __future__ import annotations

from sidecar.messages.contract import Media, Reading
from sidecar.tokens.contract import TokenCounter

MESSAGE_OVERHEAD = 4
"""Role and delimiters of a message, in tokens."""
CALL_OVERHEAD = 8
"""Delimiters and id of a tool call."""
RESULT_OVERHEAD = 6
"""Delimiters and call id of a tool result."""
IMAGE_TOKENS = 1_600
"""What a large image costs at most after the providers have scaled it down; small ones cost less."""
BYTES_PER_TOKEN = {"file": 32, "audio": 500, "video": 1_000}
"""Compressed formats: a page of PDF is some 60 KB and 2,000 tokens, a second of speech some 16 KB and 32."""
LEAST_MEDIA_TOKENS = 1_600
"""A file, sound or video, also where it is only referred to and its size is unknown."""


def message_tokens(reading: Reading, counter: TokenCounter) -> int:
    """The tokens of one message: its text, reasoning, calls, results and media, and what wraps them.

    Never below what a host would count: 4, and the tokens of the text with each call as `name(arguments)`.
    """
    content = counter.count(readable_text(reading))
    if reading.reasoning:
        content += counter.count(reading.reasoning)
    return (
        MESSAGE_OVERHEAD
        + content
        + CALL_OVERHEAD * len(reading.calls)
        + RESULT_OVERHEAD * len(reading.results)
        + sum(map(media_tokens, reading.media))
    )


def readable_text(reading: Reading) -> str:
    """The text of a message, each call as `name(arguments)`, each result, joined by line breaks."""
    parts = [reading.text] if reading.text else []
    parts += [f"{call.name}({call.arguments})" for call in reading.calls]
    parts += [result.text for result in reading.results if result.text and result.text != reading.text]
    return "\n".join(parts)


def media_tokens(media: Media) -> int:
    """A flat cost for an image, a cost by size for anything else."""
    if media.kind == "image":
        return IMAGE_TOKENS
    return max(LEAST_MEDIA_TOKENS, media.size // BYTES_PER_TOKEN[media.kind])
