"""The cost of a message in a provider's context window."""

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
"""Maximum cost of an image, after providers scale it down; small images cost less."""
BYTES_PER_TOKEN = {"file": 32, "audio": 500, "video": 1_000}
"""Compressed formats: a PDF page is about 60 KB and 2,000 tokens, a second of speech about 16 KB and 32."""
LEAST_MEDIA_TOKENS = 1_600
"""Minimum for a file, sound or video, including references of unknown size."""


def message_tokens(reading: Reading, counter: TokenCounter) -> int:
    """The tokens of one message: text, reasoning, calls, results, media and overhead.

    Never below a host's count, which is 4 plus the tokens of the text with each call as `name(arguments)`.
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
    """The text of a message, its calls as `name(arguments)` and its results, joined by line breaks."""
    parts = [reading.text] if reading.text else []
    parts += [f"{call.name}({call.arguments})" for call in reading.calls]
    parts += [result.text for result in reading.results if result.text and result.text != reading.text]
    return "\n".join(parts)


def media_tokens(media: Media) -> int:
    """Tokens of a medium: flat for an image, by size for anything else."""
    if media.kind == "image":
        return IMAGE_TOKENS
    return max(LEAST_MEDIA_TOKENS, media.size // BYTES_PER_TOKEN[media.kind])
