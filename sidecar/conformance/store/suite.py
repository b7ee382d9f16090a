"""The suite that the checks of stores are added to."""

from sidecar.conformance.checks import Suite
from sidecar.conformance.store.subject import Subject

CAPABILITIES = {
    "durable": "what was acknowledged is there when the store is opened again",
    "shared": "two stores may be open on the same data, also in different processes",
    "search": "`SessionSearch`: words and literals",
    "regex": "`SessionSearch` with regular expressions of RE2",
    "buffer": "the writes and reads that buffers stand on",
}
"""What a store may declare to offer, beyond keeping sessions."""

SUITE: Suite[Subject] = Suite("store", CAPABILITIES)
