"""Every broken server, under the name of the check that has to catch it."""

from tests.conformance.spoiling import (
    assembling,
    bad_input,
    flow,
    framing,
    handshake,
    lifecycle,
    looking,
    storing,
)
from tests.conformance.spoiling.proxy import Spoilt

SPOILT: dict[str, Spoilt] = {
    **framing.SPOILT,
    **bad_input.SPOILT,
    **lifecycle.SPOILT,
    **handshake.SPOILT,
    **flow.SPOILT,
    **storing.SPOILT,
    **storing.SESSIONS,
    **assembling.SPOILT,
    **assembling.COMPACTING,
    **assembling.SUBAGENTS,
    **looking.SPOILT,
    **looking.MEMORY,
}
