"""The table of all methods; it names their types without importing them."""

from importlib import import_module
from typing import Literal, NamedTuple

from sidecar.protocol.base import Wire

Direction = Literal["hostToServer", "serverToHost", "both"]
Kind = Literal["request", "notification"]

COMMON_ERRORS = (
    "InvalidRequest",
    "InvalidParams",
    "ServerNotInitialized",
    "RequestCancelled",
    "Busy",
    "InternalError",
)
"""Errors that any request of the host may receive."""

CORE = frozenset(
    (
        "initialize",
        "initialized",
        "shutdown",
        "exit",
        "$/cancelRequest",
        "context/assemble",
        "context/commitTurn",
        "context/compact",
        "tools/list",
        "tools/call",
        "session/delete",
        "runtime/complete",
    )
)
"""The core profile: what a minimal host needs. Everything else is optional."""

_ANY = ("SessionNotFound", "EngineFailed", "StoreUnavailable")
_STORED = ("SessionNotFound", "StoreUnavailable")
_NO_RESULT = frozenset(("shutdown", "window/workDoneProgress/create"))


def type_stem(method: str) -> str:
    """The prefix of a method's type names: its last part, then the others, capitalised.

    `context/ingestBatch` gives `IngestBatchContext`, `$/progress` gives `Progress`.
    """
    *area, verb = method.removeprefix("$/").split("/")
    return "".join(part[0].upper() + part[1:] for part in (verb, *area))


class Method(NamedTuple):
    """One line of the method table."""

    name: str
    module: str
    """Module of `sidecar.protocol` that has the types."""
    summary: str
    """What it does, in one sentence."""
    direction: Direction = "hostToServer"
    kind: Kind = "request"
    errors: tuple[str, ...] = ()
    """Names of errors in addition to `COMMON_ERRORS`."""
    capability: str | None = None
    """The capability that the receiver must have declared."""
    since: str = "1.0"
    """The protocol version that introduced it."""

    @property
    def is_core(self) -> bool:
        """Whether it belongs to the core profile."""
        return self.name in CORE

    @property
    def params(self) -> str:
        """Name of the params type."""
        return f"{type_stem(self.name)}Params"

    @property
    def result(self) -> str | None:
        """Name of the result type; `None` for a notification, or if the result is `null`."""
        if self.kind == "notification" or self.name in _NO_RESULT:
            return None
        return f"{type_stem(self.name)}Result"

    def load(self, type_name: str) -> type[Wire]:
        """The type with that name in the module of this method."""
        return getattr(import_module(f"sidecar.protocol.{self.module}"), type_name)


METHODS = (
    Method(
        "initialize",
        "lifecycle",
        "Opens the connection: settles version, engine and dialect.",
        errors=("EngineUnavailable", "StoreUnavailable"),
    ),
    Method("initialized", "lifecycle", "The host has received the answer.", kind="notification"),
    Method("shutdown", "lifecycle", "Ends the work; only exit may follow."),
    Method("exit", "lifecycle", "Ends the process.", kind="notification"),
    Method(
        "$/cancelRequest",
        "lifecycle",
        "The sender cancels one of its requests.",
        direction="both",
        kind="notification",
    ),
    Method(
        "$/progress",
        "lifecycle",
        "Reports progress of a request.",
        direction="serverToHost",
        kind="notification",
        capability="workDoneToken in the params, or window.workDoneProgress",
    ),
    Method("$/setTrace", "lifecycle", "Sets how much the server traces.", kind="notification"),
    Method(
        "window/logMessage",
        "lifecycle",
        "A line for the log of the host.",
        direction="serverToHost",
        kind="notification",
    ),
    Method(
        "window/workDoneProgress/create",
        "lifecycle",
        "Announces progress of work that no request of the host started.",
        direction="serverToHost",
        capability="window.workDoneProgress",
    ),
    Method(
        "window/workDoneProgress/cancel",
        "lifecycle",
        "The user stops work that the server has announced.",
        kind="notification",
        capability="window.workDoneProgress",
    ),
    Method("context/bootstrap", "context", "Imports the new messages of the host's transcript.", errors=_ANY),
    Method("context/ingest", "context", "Stores one message.", errors=_ANY),
    Method("context/ingestBatch", "context", "Stores several messages, all or none.", errors=_ANY),
    Method(
        "context/assemble",
        "assemble",
        "Returns what the model should see, within a token budget.",
        errors=("ContextOverflow", *_ANY),
    ),
    Method(
        "context/compact",
        "context",
        "Makes the context smaller.",
        errors=("HostCapabilityMissing", *_ANY),
    ),
    Method("context/afterTurn", "context", "Reports the end of a turn and its messages.", errors=_ANY),
    Method("context/commitTurn", "context", "Stores a turn exactly once.", errors=_ANY),
    Method("context/maintain", "context", "Lets the engine tidy up between turns.", errors=_ANY),
    Method(
        "context/preflight",
        "context",
        "Checks whether the context fits before the model is called.",
        errors=_ANY,
    ),
    Method("context/explain", "assemble", "Explains what the model saw, and why.", errors=_STORED),
    Method(
        "context/dispose",
        "context",
        "Flushes and releases the engine.",
        errors=("EngineFailed", "StoreUnavailable"),
    ),
    Method("subagent/prepareSpawn", "session", "Prepares the context of a child session.", errors=_ANY),
    Method("subagent/rollbackSpawn", "session", "Rolls back a preparation.", errors=_ANY[1:]),
    Method("subagent/ended", "session", "Reports the end of a child session.", errors=_ANY[1:]),
    Method(
        "tools/list", "engine", "Describes the tools that the engine offers to the model.", errors=_STORED
    ),
    Method("tools/call", "engine", "Runs one of the tools.", errors=_ANY),
    Method(
        "memory/register",
        "memory",
        "Offers the host as a memory source.",
        errors=("HostCapabilityMissing",),
        capability="memory/getContext",
    ),
    Method("memory/unregister", "memory", "Withdraws a memory source."),
    Method("memory/compile", "memory", "Asks all memory sources and composes one text.", errors=_STORED),
    Method("engine/list", "engine", "Lists the engines that the server knows."),
    Method("engine/doctor", "engine", "Finds problems and says how to fix them."),
    Method(
        "session/configure",
        "session",
        "Selects engine and settings for a session or an agent.",
        errors=("EngineUnavailable", *_STORED),
    ),
    Method("session/pin", "session", "Keeps a message or a text through every compaction.", errors=_STORED),
    Method("session/unpin", "session", "Removes a pin.", errors=_STORED),
    Method("session/pins", "session", "Lists the pins.", errors=_STORED),
    Method("session/truncate", "session", "Removes everything after a message.", errors=_STORED),
    Method("session/fork", "session", "Copies a session under a new id.", errors=_STORED),
    Method("session/summaries", "session", "Lists the summaries in force.", errors=_STORED),
    Method(
        "session/list", "session", "Lists the sessions of the namespace, page by page.", errors=_STORED[1:]
    ),
    Method("session/get", "session", "Returns the key facts of one session.", errors=_STORED),
    Method("session/export", "session", "Returns the stored messages, page by page.", errors=_STORED),
    Method("session/delete", "session", "Erases a session.", errors=_STORED),
    Method(
        "runtime/complete",
        "runtime",
        "Asks the host for a model's completion.",
        direction="serverToHost",
        capability="runtime/complete",
    ),
    Method(
        "runtime/compact",
        "runtime",
        "Asks the host to compact on its own.",
        direction="serverToHost",
        capability="runtime/compact",
    ),
    Method(
        "runtime/rewriteTranscript",
        "runtime",
        "Asks the host to replace messages of its transcript.",
        direction="serverToHost",
        capability="runtime/rewriteTranscript",
    ),
    Method(
        "memory/getContext",
        "memory",
        "Asks a memory source of the host for its fragments.",
        direction="serverToHost",
        capability="memory/getContext",
    ),
    Method(
        "memory/contextInjected",
        "memory",
        "Reports the outcome of a memory compilation.",
        direction="serverToHost",
        kind="notification",
    ),
    Method(
        "session/changed", "session", "A session has changed.", direction="serverToHost", kind="notification"
    ),
    Method(
        "tools/listChanged",
        "engine",
        "The list of tools has changed.",
        direction="serverToHost",
        kind="notification",
    ),
)
"""Every method of the protocol, in the order of the specification."""
