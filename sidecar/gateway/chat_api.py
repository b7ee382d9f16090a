"""OpenAI's Chat Completions API, which most other programs and local models speak."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from sidecar.gateway.request import (
    SYSTEM_ROLES,
    ModelApi,
    ModelRequest,
    Rewrite,
    fingerprint,
    items_of,
    members_of,
    role_of,
)
from sidecar.protocol.base import MessageFormat


class ChatApi(ModelApi):
    """`POST /v1/chat/completions`."""

    message_format: MessageFormat = "openai"

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """As `ModelApi.read`; these programs have no id for a session, so its beginning stands for it."""
        del headers
        members = members_of(body)
        raw = items_of(members["messages"]) if members and "messages" in members else None
        if not members or not raw:
            return None
        history = [bytes(message) for message in raw]
        opening = next((place for place, each in enumerate(history) if role_of(each) not in SYSTEM_ROLES), 0)
        return ModelRequest.of(
            members,
            f"chat:{fingerprint(*history[: opening + 1])}",
            history,
            fixed=("tools", "functions", "response_format"),
            output=("max_completion_tokens", "max_tokens"),
        )

    def write(self, request: ModelRequest, answer: Rewrite) -> bytes:
        """As `ModelApi.write`."""
        members = dict(request.members)
        messages = [Raw(message) for message in answer.messages]
        if answer.user_addition:
            messages.append(Raw(msgspec.json.encode({"role": "user", "content": answer.user_addition})))
        if answer.system_addition:
            place = sum(role_of(message) in SYSTEM_ROLES for message in answer.messages[:1])
            addition = {"role": "system", "content": answer.system_addition}
            messages.insert(place, Raw(msgspec.json.encode(addition)))
        members["messages"] = Raw(msgspec.json.encode(messages))
        return msgspec.json.encode(members)
