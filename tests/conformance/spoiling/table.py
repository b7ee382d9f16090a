"""Every broken server, under the name of the check that has to catch it."""

from tests.conformance.spoiling import (
    assembling,
    bad_input,
    engines,
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
    **assembling.REPLACING,
    **assembling.COMPACTING,
    **assembling.SUBAGENTS,
    **engines.SPOILT,
    **looking.SPOILT,
    **looking.MEMORY,
    **looking.INJECTING,
}
