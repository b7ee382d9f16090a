"""Messages for the store's benches: deterministic, with words of known frequency in them."""

import json
import random
from itertools import accumulate
from typing import NamedTuple

RARE = "zirconquasar"
"""In one message of ten thousand."""
EVERYWHERE = "message"
"""In every message."""
COMMON = "common"
"""In every second message, about."""
ABSENT = "heliotropefjord"
"""In none."""
PART = "irconqua"
"""A part of the rare word."""
SHORT_PART = "qu"
"""Two letters, which are in very many words."""
TEN_WORDS = f"{RARE} {COMMON} {EVERYWHERE} trulu ci curotra bomo gu miquidi soro"
"""A question with words of all kinds, most of them frequent."""
TWO_WORDS = f"{COMMON} ci"
"""Two frequent words, one behind the other in few messages."""
CJK = "部署"
"""A word of two characters, in one message of eighty, about."""
CJK_CHARACTER = "的"
"""A character that is in most Chinese sentences."""
RARE_EVERY = 10_000

_ONSETS = "b c d f g h k l m n p r s t v z qu st tr pl"
_WORDS = 30_000
_HAN = 2_500
_TOOLS = ("bash", "read_file", "web_search", "edit")


class Sample(NamedTuple):
    """One message in the dialect `openai`."""

    body: bytes
    role: str
    text_bytes: int
    """Bytes of the text that is said, called and answered, in UTF-8."""


class Corpus:
    """An endless session of messages of about 320 bytes; the same number always makes the same message."""

    def __init__(self) -> None:
        maker = random.Random(7)
        syllables = [onset + vowel for onset in _ONSETS.split() for vowel in "aeiou"]
        words = dict.fromkeys(
            "".join(maker.choices(syllables, k=maker.choice((1, 2, 2, 3, 3, 4)))) for _ in range(_WORDS * 2)
        )
        self._words = list(words)[:_WORDS]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self._words))))
        han = [chr(code) for code in range(0x4E00, 0x4E00 + 3 * _HAN, 3)]
        maker.shuffle(han)
        self._han = [CJK_CHARACTER, *han]
        self._han_weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._han))))

    def sample(self, number: int) -> Sample:
        """The message with this number, counted from 0."""
        maker = random.Random(number)
        text = self._text(maker, number)
        if number % 10 == 7:
            return self._call(maker, number, text)
        if number % 10 == 8:
            role, members = "tool", {"role": "tool", "tool_call_id": f"call_{number - 1}", "content": text}
        else:
            role = "assistant" if number % 2 else "user"
            members = {"role": role, "content": text}
        return _sample(members, role, len(text.encode()))

    def _text(self, maker: random.Random, number: int) -> str:
        words = maker.choices(self._words, cum_weights=self._weights, k=36)
        if maker.random() < 0.5:
            words[maker.randrange(36)] = COMMON
        if number % RARE_EVERY == RARE_EVERY // 2:
            words[5] = RARE
        if maker.random() < 0.125:
            han = "".join(maker.choices(self._han, cum_weights=self._han_weights, k=40))
            words[20:30] = [han[:18] + (CJK if maker.random() < 0.1 else "") + han[18:] + "。"]
        return f"{EVERYWHERE} {number}: {' '.join(words)}"

    def _call(self, maker: random.Random, number: int, text: str) -> Sample:
        arguments = json.dumps(
            {"path": f"src/{text[20:36].replace(' ', '/')}/{number}.py", "note": text[36:]}
        )
        name = maker.choice(_TOOLS)
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        members = {"role": "assistant", "content": f"{EVERYWHERE} {number}", "tool_calls": [call]}
        return _sample(members, "assistant", len(arguments.encode()) + len(name) + 16)


def _sample(members: dict[str, object], role: str, text_bytes: int) -> Sample:
    return Sample(json.dumps(members, ensure_ascii=False).encode(), role, text_bytes)
