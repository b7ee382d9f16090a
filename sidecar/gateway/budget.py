"""How many tokens of history a request may have: the model's window less everything else in it."""

from __future__ import annotations

import re
from collections import OrderedDict

from sidecar.gateway.request import ModelRequest
from sidecar.tokens.choose import counter

WINDOWS = (
    (r"claude.*(\[1m\]|-1m\b)", 1_000_000),
    (r"claude", 200_000),
    (r"gpt-5", 272_000),
    (r"gpt-4\.1", 1_000_000),
    (r"(o1|o3|o4)(-|$)", 200_000),
    (r"gpt-4o|gpt-4-turbo|chatgpt", 128_000),
    (r"gemini", 1_000_000),
)
"""Input windows by model name, in tokens; the first pattern that matches counts. `--window` overrides it."""
DEFAULT_WINDOW = 128_000
MARGIN = 0.02
"""Share of the window that stays free: counts are estimates."""
STEP = 0.05
"""The correction changes in steps, so that a budget, and with it the cut, stays where it is."""
LEAST, MOST = 0.7, 2.0
"""Bounds of the correction."""
REFUSED = 0.9
"""Share of a prompt that was refused for its size that the next ones may have."""
REMEMBERED = 64

_counter = counter()


class Budgets:
    """Budgets by request, corrected by what providers report."""

    def __init__(self, window: int | None = None) -> None:
        self._window = window
        self._corrections: dict[str, float] = {}
        self._fixed: OrderedDict[bytes, int] = OrderedDict()

    def history(self, request: ModelRequest) -> int:
        """Tokens for the messages; 0 where the rest of the request fills the window."""
        room = self._room(request) / self._corrections.get(request.model, 1.0)
        return max(0, int(room) - self.fixed(request))

    def window(self, model: str) -> int:
        """The model's window."""
        if self._window is not None:
            return self._window
        return next((size for name, size in WINDOWS if re.search(name, model)), DEFAULT_WINDOW)

    def fixed(self, request: ModelRequest) -> int:
        """Tokens of everything but the messages, by our own count."""
        return sum(map(self._count, request.fixed))

    def learn(self, request: ModelRequest, estimated: int, counted: int) -> None:
        """Take in that the provider counted a prompt that we had estimated."""
        if estimated < 1000 or counted < 1000:
            return
        correction = min(MOST, max(LEAST, counted / estimated))
        known = self._corrections.get(request.model, 1.0)
        if abs(correction - known) > STEP:
            self._corrections[request.model] = round(round(correction / STEP) * STEP, 2)

    def overflowed(self, request: ModelRequest, estimated: int) -> None:
        """Take in that the provider refused a prompt of that many tokens by our own count."""
        if estimated > 0:
            known = self._corrections.get(request.model, 1.0)
            self._corrections[request.model] = max(known, self._room(request) / (estimated * REFUSED))

    def _room(self, request: ModelRequest) -> float:
        """Tokens for the prompt: half of a window at least, however much the program asks for as output."""
        window = self.window(request.model)
        return window * (1 - MARGIN) - min(request.output_tokens, window // 2)

    def _count(self, part: bytes) -> int:
        known = self._fixed.get(part)
        if known is None:
            known = self._fixed[part] = _counter.count(part.decode("utf-8", "replace"))
            if len(self._fixed) > REMEMBERED:
                self._fixed.popitem(last=False)
        else:
            self._fixed.move_to_end(part)
        return known
