"""What an isolated child may read of its parent: by the tools, so many tokens, until it ends."""

import signal
from pathlib import Path

from tests.bench.corpus import conversation, needle
from tests.e2e.agent_host import AgentHost, Json

OF_ONES_OWN = ("context_status", "context_compact")
MESSAGES = [message for turn in conversation(60) for message in turn]


def granting(tokens: int) -> Json:
    return {"plugins": {"entries": {"lossless": {"config": {"grantTokens": tokens}}}}}


def begin(host: AgentHost, mode: str = "isolated") -> None:
    """A parent with a history, and its child with a task."""
    host.ingest("parent", *MESSAGES, sessionKey="parent-key")
    host.call(
        "subagent/prepareSpawn",
        parentSessionKey="parent-key",
        parentSessionId="parent",
        childSessionKey="child-key",
        childSessionId="child",
        contextMode=mode,
    )
    host.ingest("child", b'{"role":"user","content":"Find the needle."}', sessionKey="child-key")


def look(host: AgentHost, session: str = "child", **arguments: object) -> tuple[str, bool]:
    """What `context_grep` shows of the parent, and whether that is a failure."""
    given = {"pattern": needle(50), "of": "parent", **arguments}
    answer = host.call("tools/call", sessionId=session, name="context_grep", arguments=given)
    return answer["content"][0]["text"], bool(answer.get("isError"))


def is_offered(host: AgentHost, session: str) -> bool:
    """Whether the tools of a session take the argument by which a parent is read."""
    tools = host.call("tools/list", sessionId=session)["tools"]
    reading = [tool for tool in tools if tool["name"] not in OF_ONES_OWN]
    return all("of" in tool["inputSchema"]["properties"] for tool in reading)


def test_a_child_finds_what_its_parent_was_told(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless", config=granting(4000)) as host:
        begin(host)
        text, failed = look(host)
        assert not failed and "201 [user t51] " in text and needle(50) in text
        assert is_offered(host, "child") and not is_offered(host, "parent")
        own = host.call(
            "tools/call", sessionId="child", name="context_grep", arguments={"pattern": needle(50)}
        )
        assert own["structuredContent"]["groups"] == []


def test_a_child_neither_sees_nor_compacts_what_its_parent_is_sent(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless", config=granting(4000)) as host:
        begin(host)
        offered = {tool["name"]: tool for tool in host.call("tools/list", sessionId="child")["tools"]}
        for name in OF_ONES_OWN:
            assert "of" not in offered[name]["inputSchema"]["properties"]
            shown = host.call("tools/call", sessionId="child", name=name, arguments={"of": "parent"})
            assert shown["isError"] and "your own conversation" in shown["content"][0]["text"]


def test_a_grant_is_used_up_also_over_a_kill(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless", config=granting(400)) as host:
        begin(host)
        shown = 0
        while not look(host)[1]:
            shown += 1
            host.restart(signal.SIGKILL)
        assert 1 <= shown <= 3
        text, failed = look(host)
        assert failed and "tokens are left" in text and needle(50) not in text


def test_a_grant_ends_with_the_child(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless", config=granting(4000)) as host:
        begin(host)
        assert not look(host)[1]
        host.call("subagent/ended", childSessionKey="child-key", reason="completed")
        text, failed = look(host)
        assert failed and "not any more" in text
        assert not is_offered(host, "child")


def test_nobody_else_reads_a_parent(tmp_path: Path) -> None:
    with AgentHost(tmp_path / "none", engine="lossless") as host:
        begin(host)
        assert look(host)[1], "nothing is granted unless it is configured"
    with AgentHost(tmp_path / "some", engine="lossless", config=granting(4000)) as host:
        begin(host)
        host.ingest("stranger", b'{"role":"user","content":"hello"}')
        assert look(host, "stranger")[1] and look(host, "parent")[1]
