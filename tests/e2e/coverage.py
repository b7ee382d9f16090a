"""Tells which messages of a history an assembled context neither holds nor says anything of."""

import re
from collections.abc import Sequence
from functools import lru_cache

from tests.e2e.agent_host import AgentHost, Assembled, Json

DETAIL = re.compile(r"\w*\d\w*|\b[A-Z]\w{2,}|\w+_\w+|[\u3400-\u9fff]{2}")
"""Names, numbers, identifiers, Chinese words."""
SHORTEST = 3
"""Characters of a detail that tells anything, but for Chinese words; a lone number stands everywhere."""
FIRST_CHINESE = 0x3400
MARK = re.compile(r"\[ctx:summary:([^:]+):\d+\]\n\[[^\]]*\]\n(.*?)\n\[/ctx\]", re.DOTALL)


def listed(host: AgentHost, session: str = "s") -> list[Json]:
    """The summaries that are in force."""
    return host.call("session/summaries", sessionId=session)["summaries"]


def uncovered(host: AgentHost, ids: Sequence[str], messages: Sequence[bytes], answer: Assembled) -> list[int]:
    """Places of messages that are neither sent nor under a summary that says something of them."""
    place = {message_id: number for number, message_id in enumerate(ids)}
    sent = set(answer.raw)
    missing = {number for number, raw in enumerate(messages) if raw not in sent}
    if not missing:
        return []
    nodes = {node["nodeId"]: node for node in listed(host)}
    for message in answer.messages:
        for node_id, text in MARK.findall(str(message.get("content"))):
            node = nodes[node_id]
            first, last = place[node["firstMessageId"]], place[node["lastMessageId"]]
            if says_something(text, tuple(messages[first : last + 1])):
                missing -= set(range(first, last + 1))
    return sorted(missing)


@lru_cache(maxsize=256)
def says_something(text: str, source: tuple[bytes, ...]) -> bool:
    """Whether a summary has a name, a number or an id that stands in what it was made of, as a whole."""
    told = details(text)
    return any(told & details(raw.decode()) for raw in source)


def details(text: str) -> set[str]:
    """What of a text can only come from somewhere."""
    found = DETAIL.findall(text)
    return {detail for detail in found if len(detail) >= SHORTEST or ord(detail[0]) >= FIRST_CHINESE}


def broken_edges(nodes: Sequence[Json]) -> list[str]:
    """Summaries whose sources are not there, or that do not reach over them."""
    known = {node["nodeId"]: node for node in nodes}
    wrong: list[str] = []
    for node in nodes:
        for source in node["sources"]:
            if source not in known:
                wrong.append(f"{node['nodeId']} was made of {source}, which is not there")
    return wrong
