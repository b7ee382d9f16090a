"""Puts text between markers in what a model is asked, so that it stays data."""

from __future__ import annotations

import re


class Markers:
    """Markers with these names; one that stands in a text of somebody else does not count."""

    def __init__(self, *names: str) -> None:
        self._alike = re.compile(rf"<(?=/?(?:{'|'.join(names)})\b)", re.IGNORECASE)

    def around(self, name: str, nonce: str, text: str) -> str:
        """The text between the two markers of a name; nothing in it ends it."""
        return f"<{name} id={nonce}>\n{self._alike.sub('&lt;', text)}\n</{name} id={nonce}>"
