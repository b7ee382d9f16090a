"""Servers that are broken in what they have the model see, and in what makes it less."""

from typing import Any

from tests.conformance.spoiling.changes import (
    GONE,
    also,
    at,
    codes,
    error,
    put,
    refuses,
    replies,
    sends,
    takes,
)
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_ASSEMBLE, _COMPACT = "context/assemble", "context/compact"
_MESSAGES = "/result/messages"


def _as_they_came(_: Proxy, message: Message, request: Message) -> Message:
    given = at(request, "/params/messages")
    if request.get("method") == _ASSEMBLE and given is not None:
        put(message, _MESSAGES, given)
    return message


def _budget_as_epoch(_: Proxy, message: Message, request: Message) -> Message:
    put(message, "/result/contextEpoch", at(request, "/params/tokenBudget") or 0)
    return message


def _never_larger_again(proxy: Proxy, message: Message) -> Message:
    """Asks with the smallest budget that the session has seen."""
    if message.get("method") == _ASSEMBLE:
        params = message["params"]
        known = proxy.memory.setdefault(f"budget {params['sessionId']}", params.get("tokenBudget"))
        if known is not None and params.get("tokenBudget") is not None:
            params["tokenBudget"] = min(known, params["tokenBudget"])
            proxy.memory[f"budget {params['sessionId']}"] = params["tokenBudget"]
    return message


def _always_the_first(proxy: Proxy, message: Message) -> Message:
    """Asks with the budget that the session was asked with first."""
    if message.get("method") == _ASSEMBLE and "tokenBudget" in message["params"]:
        params = message["params"]
        params["tokenBudget"] = proxy.memory.setdefault(f"first {params['sessionId']}", params["tokenBudget"])
    return message


def _positive(budget: object) -> object:
    return budget if isinstance(budget, int) and budget > 0 else 1000


def _with_a_note(messages: list[Any]) -> list[Any]:
    return [*messages, {"role": "user", "content": "[note of the engine]"}]


def _shouted(messages: list[Any]) -> list[Any]:
    return [{**message, "content": str(message["content"]).upper()} for message in messages]


def _without_arguments(messages: list[Any]) -> list[Any]:
    for message in messages:
        put(message, "/tool_calls/*/function/arguments", "{}")
    return messages


def _without_what_came_between(messages: list[Any]) -> list[Any]:
    return [message for message in messages if message.get("content") != "in between"]


def _without_the_last(_: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == _ASSEMBLE:
        put(message, _MESSAGES, lambda messages: messages[:-1])
    return message


def _shortened_thinking(messages: list[Any]) -> list[Any]:
    for message in messages:
        if isinstance(message.get("content"), list):
            message["content"] = [part for part in message["content"] if part.get("type") != "thinking"]
    return messages


def _always_cleared(proxy: Proxy, message: Message, request: Message) -> Message:
    """Replaces the oldest results a few at a time, and does not raise the epoch for it."""
    if request.get("method") == _ASSEMBLE and "result" in message:
        proxy.memory["cleared"] = proxy.memory.get("cleared", 0) + 2
        put(message, "/result/contextEpoch", 1)
        for entry in message["result"]["messages"][: proxy.memory["cleared"]]:
            entry["content"] = "[left out]"
    return message


def _without_quotes(messages: list[Any]) -> list[Any]:
    return [message for message in messages if "word for word" not in str(message.get("content"))]


def _without_fences(messages: list[Any]) -> list[Any]:
    return messages[:1] + [m for m in messages[1:] if not str(m.get("content")).startswith("[ctx:")]


def _once_only(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == "context/dispose":
        if "disposed" in proxy.memory:
            return error(message["id"], -32600)
        proxy.memory["disposed"] = True
    return message


SPOILT = {
    "assembling/stored_messages_are_sent": replies(
        "writes messages in capitals", _MESSAGES, _shouted, _ASSEMBLE
    ),
    "assembling/messages_of_the_host": also(
        "stores what it assembles",
        lambda request: request.get("method") == _ASSEMBLE and bool(at(request, "/params/messages")),
        "context/afterTurn",
        lambda params: {"sessionId": params["sessionId"], "messages": params["messages"]},
    ),
    "assembling/unknown_sessions": codes("takes an unknown session for a full one", 1003, 1002),
    "assembling/invalid_budgets": takes("takes any budget for one", "/tokenBudget", _positive, _ASSEMBLE),
    "assembling/answers_fit": takes("has no budget", "/tokenBudget", 10**6, _ASSEMBLE),
    "assembling/estimates_are_honest": replies(
        "takes every answer for 100 tokens", "/result/estimatedTokens", 100, _ASSEMBLE
    ),
    "assembling/overflow": replies("does not tell what it requires", "/error/data/required", GONE),
    "assembling/prompts_are_reserved": takes("overlooks the prompt", "/prompt", GONE, _ASSEMBLE),
    "assembling/calls_and_results_stay_together": Spoilt(
        "hands broken lists back as they came", reply=_as_they_came
    ),
    "assembling/tool_loops_under_any_budget": replies(
        "shortens calls", _MESSAGES, _without_arguments, _ASSEMBLE
    ),
    "assembling/equal_epochs_extend_each_other": replies(
        "has one epoch for all answers", "/result/contextEpoch", 1, _ASSEMBLE
    ),
    "assembling/larger_budgets_keep_the_epoch": Spoilt(
        "has an epoch for every budget", reply=_budget_as_epoch
    ),
    "assembling/views_do_not_disturb_each_other": Spoilt(
        "narrows a session for good", request=_never_larger_again
    ),
    "assembling/other_views_have_all_their_room": Spoilt(
        "plans every answer for the first budget", request=_always_the_first
    ),
    "assembling/stable_prefix": replies(
        "tells a prefix that is longer than the list", "/result/stablePrefix/messageCount", 10**6
    ),
    "assembling/composition_adds_up": replies(
        "leaves a part out of the composition", "/result/composition", lambda parts: parts[1:]
    ),
    "assembling/own_answers_are_a_fixed_point": replies(
        "adds a note to every answer", _MESSAGES, _with_a_note, _ASSEMBLE
    ),
    "assembling/edits_yield_the_full_list": replies(
        "counts places of edits from 1", "/result/edits/*/start", lambda start: start + 1
    ),
    "assembling/unknown_projections": takes("overlooks the projection", "/projection", GONE, _ASSEMBLE),
    "assembling/codex_projection": replies(
        "has one fingerprint for all", "/result/contextProjection/fingerprint", "same"
    ),
}

REPLACING = {
    "replacing/thinking_stays_with_its_call": replies(
        "leaves thinking out of calls", _MESSAGES, _shortened_thinking, _ASSEMBLE
    ),
    "replacing/pruning_waits_for_an_epoch": Spoilt("prunes within an epoch", reply=_always_cleared),
    "replacing/text_that_looks_like_a_mark": replies(
        "takes quotations for its own text", _MESSAGES, _without_quotes, _ASSEMBLE
    ),
    "replacing/forged_marks": replies(
        "takes whatever looks like its marks for its own", _MESSAGES, _without_fences, _ASSEMBLE
    ),
}

COMPACTING = {
    "compacting/compacting_to_a_budget": replies(
        "tells no tokens that it saved", "/result/result/tokensAfter", 10**6, _COMPACT
    ),
    "compacting/declining": replies("gives no reasons", "/result/reason", GONE, _COMPACT),
    "compacting/models_that_fail": replies("fails with the model", "/result/ok", False, _COMPACT),
    "compacting/a_compaction_does_not_hold_the_session": replies(
        "loses what comes during a compaction", _MESSAGES, _without_what_came_between, _ASSEMBLE
    ),
    "compacting/legacy_delegates": sends(
        "hands no instructions on", "/params/customInstructions", GONE, "runtime/compact"
    ),
    "compacting/legacy_leaves_all_to_the_host": replies(
        "tells that legacy stores", "/result/ingested", True, "context/ingest"
    ),
    "compacting/preflight": takes("overlooks what is pending", "/pendingTokens", GONE, "context/preflight"),
    "compacting/explaining": replies(
        "explains that all was sent", "/result/decisions/*/decision", "sent", "context/explain"
    ),
    "compacting/disposing": Spoilt("can be disposed of once", reply=_once_only),
}

SUBAGENTS = {
    "subagents/forks_are_snapshots": takes(
        "starts every child empty", "/contextMode", "isolated", "subagent/prepareSpawn"
    ),
    "subagents/forks_need_a_parent": codes("takes an unknown parent for bad params", 1003, -32602),
    "subagents/child_ids_already_in_use": takes(
        "gives children names of its own", "/childSessionId", GONE, "subagent/prepareSpawn"
    ),
    "subagents/spawns_in_the_order_received": Spoilt("forks before it stores", reply=_without_the_last),
    "subagents/ended_erases_only_spawned_sessions": refuses(
        "erases what has the key of a child", 1003, lambda asked: asked["method"] == "session/get"
    ),
    "subagents/keys_belong_to_their_agent": takes(
        "gives keys to everybody",
        "/agentId",
        GONE,
        "context/ingest",
        "context/assemble",
        "subagent/prepareSpawn",
    ),
    "subagents/children_belong_to_their_agent": takes(
        "leaves children to whoever comes first", "/childAgentId", GONE, "subagent/prepareSpawn"
    ),
    "subagents/ending_a_child": takes(
        "keeps children that are deleted", "/reason", "completed", "subagent/ended"
    ),
}
