"""The suite that the checks of engines are added to."""

from sidecar.conformance.checks import Suite
from sidecar.conformance.engine.subject import Conversation

ENGINE_SUITE: Suite[Conversation] = Suite(
    "engine",
    {
        "stores": "the engine stores messages, so that an answer needs no list of the host",
        "budget": "the engine is held to the budget",
        "owns-compaction": "the engine compacts itself",
    },
)
