// Generated from sidecar/protocol by `make schema`; do not edit.

//! The types of the Context Engine Protocol, and a method of [`Client`] for each request.

use crate::{enumeration::open_enumeration, Client, Error};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The newest version of the protocol that these types describe.
pub const PROTOCOL_VERSION: &str = "1.0";

open_enumeration! {
    /// Trace level of the server.
    TraceValue {
        Off = "off",
        Messages = "messages",
        Verbose = "verbose",
    }
}

open_enumeration! {
    /// Capability that a host can declare; servers ignore unknown names.
    HostCapability {
        RuntimeComplete = "runtime/complete",
        RuntimeCompact = "runtime/compact",
        RuntimeRewriteTranscript = "runtime/rewriteTranscript",
        MemoryGetContext = "memory/getContext",
        SessionChanged = "session/changed",
        AssembleDelta = "assembleDelta",
        OwnsHistory = "ownsHistory",
    }
}

open_enumeration! {
    /// Dialect of messages: chat completions, Responses items, Anthropic messages, pi
    /// AgentMessage.
    MessageFormat {
        Openai = "openai",
        OpenaiResponses = "openai-responses",
        Anthropic = "anthropic",
        Openclaw = "openclaw",
    }
}

/// Id by which an engine is selected.
pub type EngineId = String;

open_enumeration! {
    /// Whether the host waits for `context/maintain` before it continues.
    MaintenanceMode {
        Foreground = "foreground",
        Background = "background",
    }
}

/// Chosen by the sender; unique among its requests in flight.
pub type RequestId = serde_json::Value;

/// 1 error, 2 warning, 3 info, 4 log, 5 debug.
pub type MessageType = i64;

/// Name of a session as the host spells it: a key, never a path; 1 to 1024 code points, no NUL.
pub type SessionId = String;

/// Alias of a session.
pub type SessionKey = String;

/// Name of an agent, which owns sessions.
pub type AgentId = String;

/// One message in the dialect of the connection; has `role` or `type`. The server reads what it
/// needs and hands the whole object back byte for byte.
pub type Message = Box<RawValue>;

/// Id of a message within its session.
pub type MessageId = String;

/// Name of a turn within its session.
pub type TurnId = String;

/// Id of an assembled answer, unique in the store.
pub type ResultId = String;

open_enumeration! {
    /// Backend that keeps its own thread; the server refuses others.
    Projection {
        Codex = "codex",
    }
}

open_enumeration! {
    /// Whose estimate the host should trust before it calls the model.
    PromptAuthority {
        Assembled = "assembled",
        PreassemblyMayOverflow = "preassembly_may_overflow",
    }
}

open_enumeration! {
    /// Where a part of the context comes from.
    ContentKind {
        System = "system",
        Summary = "summary",
        ActivityLog = "activityLog",
        Recent = "recent",
        Memory = "memory",
        Recall = "recall",
    }
}

open_enumeration! {
    /// `per_turn` goes with every turn, `thread_bootstrap` begins a new thread.
    ProjectionMode {
        PerTurn = "per_turn",
        ThreadBootstrap = "thread_bootstrap",
    }
}

open_enumeration! {
    /// Compact to the budget, or to the engine's own threshold; other values are refused.
    CompactionTarget {
        Budget = "budget",
        Threshold = "threshold",
    }
}

open_enumeration! {
    /// Outcome of committing a turn.
    CommitStatus {
        Committed = "committed",
        Duplicate = "duplicate",
    }
}

open_enumeration! {
    /// How the host should react before it calls the model.
    PreflightAction {
        None = "none",
        Compact = "compact",
    }
}

open_enumeration! {
    /// What became of a stored message in an answer.
    Decision {
        Sent = "sent",
        Summarised = "summarised",
        Stubbed = "stubbed",
        Dropped = "dropped",
        Pinned = "pinned",
    }
}

open_enumeration! {
    /// When a memory source is asked: once per session, or for every prompt.
    InjectionPoint {
        SessionStart = "session-start",
        PerMessage = "per-message",
    }
}

open_enumeration! {
    /// `fork` starts the child from a snapshot of the parent, `isolated` starts it empty; the
    /// server refuses others.
    SpawnMode {
        Fork = "fork",
        Isolated = "isolated",
    }
}

open_enumeration! {
    /// Why a child session has ended; `deleted` erases its data, every other reason keeps it.
    EndReason {
        Deleted = "deleted",
        Completed = "completed",
        Swept = "swept",
        Released = "released",
    }
}

open_enumeration! {
    /// State of an unfinished import.
    ImportState {
        Running = "running",
        Interrupted = "interrupted",
    }
}

open_enumeration! {
    /// What a completion is for; a host may choose another model for each.
    CompletionPurpose {
        Summary = "summary",
        Condense = "condense",
        Synthesis = "synthesis",
        Query = "query",
    }
}

open_enumeration! {
    /// Who speaks in a completion.
    PromptRole {
        User = "user",
        Assistant = "assistant",
    }
}

open_enumeration! {
    /// What happened to a session; `changed` is a change by another process.
    SessionChange {
        Configured = "configured",
        Pinned = "pinned",
        Unpinned = "unpinned",
        Truncated = "truncated",
        Compacted = "compacted",
        Maintained = "maintained",
        Deleted = "deleted",
        Created = "created",
        Appended = "appended",
        Changed = "changed",
    }
}

/// Params of `initialize`: those of the Language Server Protocol.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Process id of the host, `null` for none; the server ends when a host that was alive
    /// dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<i64>,
    /// The client program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<PeerInfo>,
    /// Language of the user, an IETF tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Folder of the workspace, `null` if none is open; superseded by `rootUri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_path: Option<String>,
    /// Folder of the workspace, `null` if none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_uri: Option<String>,
    /// Client capabilities of the Language Server Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
    /// Options of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_options: Option<InitializationOptions>,
    /// Initial trace level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceValue>,
    /// Folders of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_folders: Option<serde_json::Value>,
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Name and version of a program, as in the Language Server Protocol.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerInfo {
    /// Name of the program.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The client's initialization options; this protocol uses only `contextEngine`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializationOptions {
    /// What the host requests of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_engine: Option<ContextEngineOptions>,
}

/// What the host asks of the server, under `initializationOptions.contextEngine`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEngineOptions {
    /// Version that the host speaks; absent means the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The agent runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostInfo>,
    /// Requests that the host answers, `session/changed`, `assembleDelta` and `ownsHistory`;
    /// unknown names are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_capabilities: Option<Vec<HostCapability>>,
    /// Dialect of every message on this connection. Absent means `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_format: Option<MessageFormat>,
    /// Id of the engine to use; overrides the configured slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineId>,
    /// Separates hosts that share a store; defaults to `host.id`, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Overrides in the shape of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<RawValue>>,
}

/// The agent runtime behind the connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostInfo {
    /// Short name of the runtime, such as `openclaw`; the default namespace.
    pub id: String,
    /// Version of the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Result of `initialize`: settings are valid and the store is open.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// The server program.
    pub server_info: PeerInfo,
}

/// Server capabilities of the Language Server Protocol, including those for editors.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Capabilities of this protocol.
    pub experimental: ExperimentalCapabilities,
}

/// Capabilities outside the Language Server Protocol.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalCapabilities {
    /// What the server offers to agent runtimes.
    pub context_engine: ContextEngineCapabilities,
}

/// What the server offers, under `capabilities.experimental.contextEngine`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEngineCapabilities {
    /// Version that both sides speak from now on.
    pub protocol_version: String,
    /// The engine that serves this connection.
    pub engine: EngineInfo,
    /// Requests and notifications of this protocol that the server accepts.
    pub methods: Vec<String>,
    /// Names of the tools that `tools/list` describes.
    pub tools: Vec<String>,
    /// Dialects that the server supports.
    pub message_formats: Vec<MessageFormat>,
    /// Limits of the connection.
    pub limits: Limits,
}

/// Description of a context engine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineInfo {
    /// Id by which hosts and configuration select the engine.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Version of the engine.
    pub version: String,
    /// True if the engine compacts, so that the host must not.
    pub owns_compaction: bool,
    /// Whether the host waits for `context/maintain` before it continues.
    pub turn_maintenance_mode: MaintenanceMode,
    /// Methods that the engine implements itself, such as `afterTurn`; the server answers the
    /// others.
    pub implements: Vec<String>,
    /// Host capabilities without which the engine refuses to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_requirements: Option<Vec<String>>,
    /// Present if this engine replaces the selected one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// The engine that was selected but could not serve.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FallbackFor {
    /// Id of the engine that was selected.
    pub id: String,
    /// Why it could not serve, and what to fix.
    pub reason: String,
}

/// Limits of this connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Largest body of one message, in bytes.
    pub max_message_bytes: i64,
    /// Maximum concurrent requests; further ones are parked.
    pub max_in_flight: i64,
    /// Bytes of parked requests beyond which a request is refused with Busy.
    pub max_parked_bytes: i64,
    /// How long the server waits for the host's answer, in milliseconds.
    pub host_request_timeout_ms: i64,
    /// Budget of requests that name none, in tokens.
    pub default_token_budget: i64,
}

/// Params of `initialized`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializedParams {}

/// Params of `shutdown`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownParams {}

/// Params of `exit`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitParams {}

/// Params of `$/cancelRequest`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequestParams {
    /// Id of the request to cancel.
    pub id: RequestId,
}

/// Params of `$/progress`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token of the work.
    pub token: serde_json::Value,
    /// A WorkDoneProgressBegin, WorkDoneProgressReport or WorkDoneProgressEnd.
    pub value: serde_json::Value,
}

/// Params of `$/setTrace`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTraceParams {
    /// Trace level from now on.
    pub value: TraceValue,
}

/// Params of `window/logMessage`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogMessageWindowParams {
    /// 1 error, 2 warning, 3 info, 4 log, 5 debug.
    pub r#type: MessageType,
    /// The line to log.
    pub message: String,
}

/// Params of `window/workDoneProgress/create`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateWindowWorkDoneProgressParams {
    /// Token under which the server will report progress.
    pub token: serde_json::Value,
}

/// Params of `window/workDoneProgress/cancel`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelWindowWorkDoneProgressParams {
    /// Token of the work to stop.
    pub token: serde_json::Value,
}

/// Params of `context/bootstrap`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The host's whole transcript; takes precedence over `sessionFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Locator of the host's transcript file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Name of the importer for the file; if absent, the server detects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file_format: Option<String>,
    /// Import in steps; meanwhile reading requests proceed and storing requests wait for the
    /// end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// Result of `context/bootstrap`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapContextResult {
    /// True if new messages were stored.
    pub bootstrapped: bool,
    /// How many messages were stored.
    pub imported_messages: i64,
    /// Why nothing was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/ingest`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The message to store.
    pub message: Message,
    /// The host's id of the message; takes precedence over an id inside the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The host's name of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// When the message was created; defaults to its own timestamp, else to now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// True for a message that only keeps the agent awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_heartbeat: Option<bool>,
}

/// Result of `context/ingest`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestContextResult {
    /// False if nothing was stored.
    pub ingested: bool,
    /// Id under which the message is stored.
    pub message_id: MessageId,
    /// The turn of the message; empty if nothing is stored, as with `legacy`.
    pub turn_id: String,
    /// The message as people should see it, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_message: Option<Message>,
    /// Why nothing was stored, such as `duplicate` or `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/ingestBatch`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestBatchContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The messages to store, all or none, in this order.
    pub messages: Vec<Message>,
    /// The host's ids, one for each message; `null` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ids: Option<Vec<Option<String>>>,
    /// True if the messages only keep the agent awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_heartbeat: Option<bool>,
}

/// Result of `context/ingestBatch`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestBatchContextResult {
    /// Number of messages stored; known ones do not count.
    pub ingested_count: i64,
    /// Ids under which the messages are stored, one for each.
    pub message_ids: Vec<MessageId>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/assemble`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssembleContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Maximum tokens of the answer; defaults to `limits.defaultTokenBudget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
    /// The host's transcript; replaces the live tail of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// The user's text of this turn, if the host adds the message itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Model that will read the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of the tools that the model may call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_tools: Option<Vec<String>>,
    /// How memory should cite its sources; for engines, not for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations_mode: Option<String>,
    /// Request `edits` against this earlier result; needs `assembleDelta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_result_id: Option<ResultId>,
    /// Also request a `contextProjection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projection>,
}

/// Result of `context/assemble`; has either `messages` or `edits`. Exactly one of `messages`,
/// `edits` is present.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssembleContextResult {
    /// What the model should see, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Differences from the previous result, ascending; positions refer to the previous list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<MessageEdit>>,
    /// Tokens of messages and additions together; a reserved prompt comes on top.
    pub estimated_tokens: i64,
    /// Rises when an earlier message is removed, summarised, replaced or moved.
    pub context_epoch: i64,
    /// Where a cache breakpoint belongs.
    pub stable_prefix: StablePrefix,
    /// Identifies this result for `previousResultId` and `context/explain`.
    pub result_id: ResultId,
    /// Tokens and messages by kind of content.
    pub composition: Vec<CompositionPart>,
    /// Text to append to the host's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_addition: Option<String>,
    /// Text to append to this turn's user message, and to store with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_append: Option<String>,
    /// Whose estimate the host should trust before it calls the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_authority: Option<PromptAuthority>,
    /// Present if `projection` requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_projection: Option<ContextProjection>,
    /// Present if another engine gave this answer, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// One change of an earlier list of messages.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEdit {
    /// Index in the previous list where the change begins.
    pub start: i64,
    /// How many messages of the previous list go.
    pub delete_count: i64,
    /// What comes in their place.
    pub messages: Vec<Message>,
}

/// The part of the list that the next result of the same epoch repeats.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StablePrefix {
    /// Messages in it: a cache breakpoint belongs after them.
    pub message_count: i64,
    /// Tokens in it.
    pub tokens: i64,
}

/// The share of the answer that one kind of content takes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositionPart {
    /// Where the content comes from.
    pub kind: ContentKind,
    /// Its tokens; all parts sum to `estimatedTokens`.
    pub tokens: i64,
    /// Its messages; all parts sum to the length of the list.
    pub message_count: i64,
}

/// The context for a backend that keeps its own thread.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextProjection {
    /// `per_turn` goes with every turn, `thread_bootstrap` begins a new thread.
    pub mode: ProjectionMode,
    /// Identifies the thread: if the value differs, the backend must start a new one.
    pub epoch: String,
    /// Hash of the projection's source.
    pub fingerprint: String,
    /// What goes before the conversation.
    pub developer_instructions: String,
    /// The user's text.
    pub prompt: String,
}

/// Params of `context/compact`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Maximum tokens of the context afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
    /// Compact even if the context fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Why it is forced, such as `overflow` or `manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_reason: Option<String>,
    /// The host's own count, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_token_count: Option<i64>,
    /// Compact down to the budget, or to the engine's own threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_target: Option<CompactionTarget>,
    /// What the summary should focus on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// Result of `context/compact`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactContextResult {
    /// False if something failed; declining is not a failure.
    pub ok: bool,
    /// True if the context has changed.
    pub compacted: bool,
    /// Why nothing was compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The summary that now covers older messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The oldest message that is still sent in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_kept_message_id: Option<MessageId>,
    /// Tokens of the context before.
    pub tokens_before: i64,
    /// Tokens of the context now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<i64>,
    /// Further details from the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

/// Params of `context/afterTurn`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterTurnContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The turn's new messages; the whole transcript if `prePromptMessageCount` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// How many of the messages precede the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_prompt_message_count: Option<i64>,
    /// Maximum tokens of the next turn's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
    /// The provider's usage object, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<RawValue>>,
    /// True if the turn only kept the agent awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_heartbeat: Option<bool>,
    /// Summary that the host wrote when it compacted on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compaction_summary: Option<String>,
}

/// Result of `context/afterTurn`: empty if all went well.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterTurnContextResult {
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/commitTurn`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitTurnContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Names the turn; each key is committed only once.
    pub advancement_key: String,
    /// The turn's messages.
    pub messages: Vec<Message>,
    /// True if the turn only kept the agent awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_heartbeat: Option<bool>,
    /// The host's receipt for the prompt; never interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<serde_json::Value>,
    /// The host's receipt for the end of the turn; never interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<serde_json::Value>,
}

/// Result of `context/commitTurn`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitTurnContextResult {
    /// `duplicate` if the key was committed before.
    pub status: CommitStatus,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/maintain`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintainContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Maximum tokens of the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
}

/// Result of `context/maintain`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintainContextResult {
    /// True if the host's transcript was rewritten.
    pub changed: bool,
    /// Number of bytes by which it shrank.
    pub bytes_freed: i64,
    /// How many of its messages were rewritten.
    pub rewritten_entries: i64,
    /// Why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/preflight`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreflightContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Maximum tokens of the context.
    pub token_budget: i64,
    /// The host's transcript; replaces the live tail of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Tokens that the host is about to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_tokens: Option<i64>,
}

/// Result of `context/preflight`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreflightContextResult {
    /// True if the context and the pending tokens fit the budget.
    pub fits: bool,
    /// Tokens of both together.
    pub estimated_tokens: i64,
    /// How the host should react before it calls the model.
    pub action: PreflightAction,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `context/explain`; without `resultId` and `turnId`, the newest answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainContextParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Id of an assemble result; takes precedence over `turnId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_id: Option<ResultId>,
    /// The newest assemble result of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
}

/// Result of `context/explain`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainContextResult {
    /// One for each stored message that was considered, oldest first.
    pub decisions: Vec<ContextDecision>,
    /// What was added from elsewhere.
    pub injected: Vec<InjectedItem>,
}

/// What became of one stored message in an answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextDecision {
    /// The message.
    pub message_id: MessageId,
    /// The turn that it belongs to.
    pub turn_id: TurnId,
    /// Its own size, in tokens.
    pub tokens: i64,
    /// What happened to it.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// What covers it: a summary's node id, or the rule that left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Content of an answer that is not a message of the session.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectedItem {
    /// The memory source or engine that it came from.
    pub plugin_name: String,
    /// When its source was asked: at session start, or for this prompt.
    pub injection_point: InjectionPoint,
    /// Its size, in tokens.
    pub tokens: i64,
    /// The text.
    pub content: String,
    /// Id of the piece within its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Params of `context/dispose`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisposeContextParams {
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `context/dispose`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisposeContextResult {}

/// Params of `subagent/prepareSpawn`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrepareSpawnSubagentParams {
    /// Key of the session that spawns.
    pub parent_session_key: SessionKey,
    /// Key of the session that is about to begin.
    pub child_session_key: SessionKey,
    /// `fork` starts the child from a snapshot of the parent, `isolated` starts it empty.
    pub context_mode: SpawnMode,
    /// Id of the parent's session, if the host knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// Id of the child's session, if the host knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_session_id: Option<SessionId>,
    /// The host's locator of the parent's transcript; never opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_file: Option<String>,
    /// The host's locator of the child's transcript; never opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_session_file: Option<String>,
    /// The agent that spawns; it can fork only its own sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Owner of the child; defaults to `agentId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_agent_id: Option<AgentId>,
    /// Milliseconds after which the preparation is swept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `subagent/prepareSpawn`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrepareSpawnSubagentResult {
    /// Id for `subagent/rollbackSpawn`; absent if nothing was prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation_id: Option<String>,
}

/// Params of `subagent/rollbackSpawn`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackSpawnSubagentParams {
    /// The preparation to roll back.
    pub preparation_id: String,
    /// The agent that spawned; preparations of other agents are unknown to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `subagent/rollbackSpawn`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackSpawnSubagentResult {
    /// False if the preparation is unknown, or the child has already stored something.
    pub rolled_back: bool,
}

/// Params of `subagent/ended`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedSubagentParams {
    /// Key of the session that has ended.
    pub child_session_key: SessionKey,
    /// `deleted` erases the child's data, if it was spawned; the other reasons keep it.
    pub reason: EndReason,
    /// The agent that spawned; children of other agents are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `subagent/ended`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedSubagentResult {}

/// Params of `tools/list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsParams {
    /// List the tools of this session's engine; absent means the connection's engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Agent that requests the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// Result of `tools/list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The tools that the engine offers; may be empty.
    pub tools: Vec<ToolDefinition>,
}

/// A tool that the host may offer to its model.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// Name under which `tools/call` knows the tool.
    pub name: String,
    /// What the tool does, written for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Box<RawValue>,
}

/// Params of `tools/call`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolsParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Name of the tool, as `tools/list` gave it.
    pub name: String,
    /// Arguments that satisfy the tool's input schema; absent means an empty object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
}

/// Result of `tools/call`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolsResult {
    /// The content for the model.
    pub content: Vec<TextContent>,
    /// The same content for programs, in the tool's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// True if the tool ran and failed; the content says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// A piece of text output of a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// Selects the variant.
    pub r#type: String,
    /// The text, at most 16 000 characters.
    pub text: String,
}

/// Params of `memory/register`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterMemoryParams {
    /// Name of the source; the same name replaces an earlier registration.
    pub name: String,
    /// When to ask the source.
    pub injection_points: Vec<InjectionPoint>,
    /// Maximum tokens of this source in one compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
}

/// Result of `memory/register`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterMemoryResult {
    /// Always true: the source is asked from now on, as long as the connection lives.
    pub registered: bool,
}

/// Params of `memory/unregister`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnregisterMemoryParams {
    /// Name of the source.
    pub name: String,
}

/// Result of `memory/unregister`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnregisterMemoryResult {
    /// False if no source of this name was registered.
    pub unregistered: bool,
}

/// Params of `memory/compile`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompileMemoryParams {
    /// Agent for whose prompt this is.
    pub agent_id: AgentId,
    /// Which sources to ask.
    pub injection_point: InjectionPoint,
    /// The session; if given, fragments already injected into it are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Text of the user, to which the memory should be relevant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Budget of the compilation, in tokens; absent means the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `memory/compile`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompileMemoryResult {
    /// The text to inject; empty if no source had any.
    pub final_content: String,
    /// Size of the text, in tokens.
    pub tokens: i64,
    /// True if a model rewrote fragments into one text.
    pub synthesized: bool,
    /// Every fragment that was considered.
    pub fragments: Vec<CompiledFragment>,
}

/// What became of one fragment.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompiledFragment {
    /// The source of the fragment.
    pub plugin_name: String,
    /// The text as the source supplied it.
    pub content: String,
    /// Size used for the budget, in tokens.
    pub tokens: i64,
    /// 0 to 100.
    pub priority: f64,
    /// False if it did not fit.
    pub included: bool,
}

/// Params of `engine/list`: empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListEngineParams {}

/// Result of `engine/list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListEngineResult {
    /// Every engine that is installed or configured.
    pub engines: Vec<EngineListing>,
}

/// An engine that the server knows, usable or not.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineListing {
    /// Id by which hosts and configuration select the engine.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Version of the engine.
    pub version: String,
    /// True if the engine compacts, so that the host must not.
    pub owns_compaction: bool,
    /// Whether the host waits for `context/maintain` before it continues.
    pub turn_maintenance_mode: MaintenanceMode,
    /// Methods that the engine implements itself, such as `afterTurn`; the server answers the
    /// others.
    pub implements: Vec<String>,
    /// Host capabilities without which the engine refuses to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_requirements: Option<Vec<String>>,
    /// Present if this engine replaces the selected one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
    /// True for the engine that serves this connection.
    pub active: bool,
    /// True if the engine can be selected now.
    pub available: bool,
    /// Why it is not available, and what to fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Params of `engine/doctor`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorEngineParams {
    /// Token under which the server reports progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `engine/doctor`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorEngineResult {
    /// True if every check is ok.
    pub ok: bool,
    /// All checks, in a stable order.
    pub checks: Vec<DoctorCheck>,
    /// Present if a shadow engine is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowReport>,
}

/// One diagnostic check.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorCheck {
    /// Short stable name, such as `store`.
    pub name: String,
    /// True if nothing needs to be done.
    pub ok: bool,
    /// The finding.
    pub message: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Two engines compared on the same requests.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowReport {
    /// The engine whose answers were sent.
    pub primary: ShadowSide,
    /// The engine whose answers were not.
    pub shadow: ShadowSide,
    /// Requests that both engines answered.
    pub compared: i64,
    /// Share of the bytes the primary sent that the shadow would have sent too, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Requests still queued for the shadow.
    pub waiting: i64,
    /// Requests the shadow never received, because its queue was full or it was suspended.
    pub dropped: i64,
    /// Requests not compared, because the session changed in the meantime.
    pub outdated: i64,
    /// Why its last answer failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Statistics of one of the two engines compared.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowSide {
    /// Id of the engine; for the primary, of the engine that serves by default.
    pub engine: String,
    /// Answers to `context/assemble` that were compared.
    pub answers: i64,
    /// Requests it failed to answer; counted for the shadow only, since the host sees the
    /// primary's.
    pub failures: i64,
    /// Answers that a provider would refuse.
    pub invalid: i64,
    /// Mean tokens per answer.
    pub mean_tokens: i64,
    /// Share of the previous answer, in bytes, that the session's next answer begins with: what
    /// caches hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_kept: Option<f64>,
    /// Median latency of the newest answers, in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile of their latency, in milliseconds.
    pub p95_ms: f64,
}

/// Params of `session/configure`; at least one of `sessionId` and `agentId` is required. At
/// least one of `session_id`, `agent_id` is present.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureSessionParams {
    /// The session to configure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Without `sessionId`, the agent to configure; with it, the owner of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Engine to use from the next call on; absent keeps the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineId>,
    /// Settings of the engine; they replace the earlier ones. Absent keeps those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<RawValue>>,
}

/// Result of `session/configure`: the settings now in force.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureSessionResult {
    /// Id of the engine.
    pub engine: EngineId,
    /// The settings of the session or agent; `{}` if none.
    pub config: Box<RawValue>,
}

/// Params of `session/pin`; exactly one of `messageId` and `text`. Exactly one of `message_id`,
/// `text` is present.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// A stored message to keep through compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// A text to keep in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Result of `session/pin`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinSessionResult {
    /// Id for `session/unpin`.
    pub pin_id: String,
}

/// Params of `session/unpin`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnpinSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The pin to remove.
    pub pin_id: String,
}

/// Result of `session/unpin`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnpinSessionResult {
    /// False if there is no such pin.
    pub unpinned: bool,
}

/// Params of `session/pins`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinsSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `session/pins`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinsSessionResult {
    /// Every pin of the session, oldest first.
    pub pins: Vec<Pin>,
}

/// Something that must survive compaction.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// Id for `session/unpin`.
    pub pin_id: String,
    /// The message, if a message is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The text, if a text is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was pinned.
    pub created_at: String,
}

/// Params of `session/truncate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TruncateSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// The last message to keep.
    pub after_message_id: MessageId,
}

/// Result of `session/truncate`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TruncateSessionResult {
    /// How many messages were removed.
    pub removed_messages: i64,
}

/// Params of `session/fork`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Id of the copy; must not exist yet.
    pub new_session_id: SessionId,
    /// The last message to copy; defaults to all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_message_id: Option<MessageId>,
}

/// Result of `session/fork`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkSessionResult {
    /// Id of the copy.
    pub session_id: SessionId,
    /// How many messages it has.
    pub message_count: i64,
}

/// Params of `session/summaries`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummariesSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `session/summaries`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummariesSessionResult {
    /// Every summary in force, in the order of what it covers, deeper ones first.
    pub summaries: Vec<SummaryNode>,
    /// The newest compactions, oldest first, as in `details` of `context/compact`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipts: Option<Vec<Box<RawValue>>>,
}

/// A summary that covers a range of messages.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryNode {
    /// Id of the summary; the recall tools accept it.
    pub node_id: String,
    /// 0 for a summary of messages, one more than its deepest source for a condensed one.
    pub depth: i64,
    /// The summary.
    pub text: String,
    /// Its size, in tokens.
    pub tokens: i64,
    /// How it was written, such as `model` or `deterministic`.
    pub quality: String,
    /// When it was written.
    pub created_at: String,
    /// The first message that it covers.
    pub first_message_id: MessageId,
    /// The last message that it covers.
    pub last_message_id: MessageId,
    /// How many messages it covers.
    pub message_count: i64,
    /// Node ids that were condensed into it; empty for a summary of messages.
    pub sources: Vec<String>,
}

/// Params of `session/list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionParams {
    /// Maximum entries on one page; defaults to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Where to continue, from the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only sessions of this agent, and those that no agent owns yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// Result of `session/list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionResult {
    /// One page of sessions, latest change first.
    pub sessions: Vec<SessionEntry>,
    /// Requests the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The key facts of one session.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// Id of the session.
    pub session_id: SessionId,
    /// Its alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Id of the engine that serves it.
    pub engine: EngineId,
    /// Dialect of its messages.
    pub message_format: MessageFormat,
    /// How many messages are stored.
    pub message_count: i64,
    /// When the first message was stored.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// Params of `session/get`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `session/get`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSessionResult {
    /// Id of the session.
    pub session_id: SessionId,
    /// Its alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Id of the engine that serves it.
    pub engine: EngineId,
    /// Dialect of its messages.
    pub message_format: MessageFormat,
    /// How many messages are stored.
    pub message_count: i64,
    /// When the first message was stored.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Owner of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// How many turns it has.
    pub turn_count: i64,
    /// Present until a background import is complete; `messageCount` shows its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<SessionImport>,
}

/// An unfinished import.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionImport {
    /// `interrupted` if a process ended during it: the same `context/bootstrap` resumes it.
    pub state: ImportState,
    /// Number of messages the session will have at the end.
    pub total: i64,
}

/// Params of `session/export`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Where to continue, from the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Result of `session/export`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportSessionResult {
    /// Id of the session.
    pub session_id: SessionId,
    /// Dialect of the messages.
    pub message_format: MessageFormat,
    /// One page of messages, oldest first.
    pub messages: Vec<ExportedMessage>,
    /// Requests the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A stored message with its metadata.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedMessage {
    /// Id of the message.
    pub message_id: MessageId,
    /// The turn that it belongs to.
    pub turn_id: TurnId,
    /// The host's timestamp, otherwise the time of receipt.
    pub timestamp: String,
    /// The message, byte for byte.
    pub message: Message,
    /// Fenced parts of its text that this server wrote, such as memory that the host stored
    /// with the message. Each is quoted exactly. No other server can verify them, so an import
    /// leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<Vec<String>>,
}

/// Params of `session/delete`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteSessionParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
}

/// Result of `session/delete`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteSessionResult {
    /// False if there was no such session.
    pub deleted: bool,
}

/// Params of `runtime/complete`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteRuntimeParams {
    /// What the text is for; a host may choose another model for each.
    pub purpose: CompletionPurpose,
    /// The conversation to complete.
    pub messages: Vec<PromptMessage>,
    /// Instructions that precede the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Largest answer, in tokens.
    pub max_tokens: i64,
    /// Model that the configuration requests; the host decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session for which the completion is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// A message of a completion, in no dialect.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptMessage {
    /// Who speaks.
    pub role: PromptRole,
    /// The text.
    pub content: String,
}

/// Result of `runtime/complete`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteRuntimeResult {
    /// What the model wrote.
    pub text: String,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its token usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<CompletionUsage>,
}

/// Token usage of a completion.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionUsage {
    /// Tokens of the input.
    pub input_tokens: i64,
    /// Tokens of the output.
    pub output_tokens: i64,
}

/// Params of `runtime/compact`: those of `context/compact`, passed on.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactRuntimeParams {
    /// The session: a key that the host chooses.
    pub session_id: SessionId,
    /// The agent's alias for the session; it refers to the session it was last used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Owner of the session: the first agent that uses it. To other agents the session does not
    /// exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Token under which the server reports progress by `$/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_done_token: Option<serde_json::Value>,
    /// Maximum tokens of the context afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<i64>,
    /// Compact even if the context fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Why it is forced, such as `overflow` or `manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_reason: Option<String>,
    /// The host's own count, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_token_count: Option<i64>,
    /// Compact down to the budget, or to the engine's own threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_target: Option<CompactionTarget>,
    /// What the summary should focus on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// Result of `runtime/compact`: passed back as that of `context/compact`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactRuntimeResult {
    /// False if something failed; declining is not a failure.
    pub ok: bool,
    /// True if the context has changed.
    pub compacted: bool,
    /// Why nothing was compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// Present if the selected engine did not serve this request, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<FallbackFor>,
}

/// Params of `runtime/rewriteTranscript`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteTranscriptRuntimeParams {
    /// The session whose transcript to rewrite.
    pub session_id: SessionId,
    /// Alias of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The replacements; other messages stay.
    pub replacements: Vec<TranscriptReplacement>,
}

/// One message of the host's transcript to replace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptReplacement {
    /// Id of the message.
    pub message_id: MessageId,
    /// What to put in its place.
    pub message: Message,
}

/// Result of `runtime/rewriteTranscript`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteTranscriptRuntimeResult {
    /// True if the transcript has changed.
    pub changed: bool,
    /// Number of bytes by which it shrank.
    pub bytes_freed: i64,
    /// How many messages were replaced.
    pub rewritten_entries: i64,
    /// Why nothing, or not everything, was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Params of `memory/getContext`, a request to the host.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetContextMemoryParams {
    /// Name under which the source was registered.
    pub name: String,
    /// Agent for whose prompt this is.
    pub agent_id: AgentId,
    /// Why the source is asked.
    pub injection_point: InjectionPoint,
    /// The session, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Alias of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Text of the user, to which the memory should be relevant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// Result of `memory/getContext`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetContextMemoryResult {
    /// The source's fragments, best first; may be empty.
    pub fragments: Vec<MemoryFragment>,
}

/// A piece of text that a memory source wants the model to see.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryFragment {
    /// Id of the piece within its source; defaults to a hash of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text.
    pub content: String,
    /// Size in tokens; if absent or not positive, the server estimates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// 0 to 100; the lowest is cut first. Absent means `50`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Heading for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// False keeps the text verbatim and away from any model; absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesize: Option<bool>,
}

/// Params of `memory/contextInjected`: the outcome of a compilation.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextInjectedMemoryParams {
    /// Agent for whose prompt this was.
    pub agent_id: AgentId,
    /// Which sources were asked.
    pub injection_point: InjectionPoint,
    /// Every fragment that was considered.
    pub fragments: Vec<CompiledFragment>,
    /// True if a model rewrote fragments into one text.
    pub synthesized: bool,
    /// The text that the answer carries.
    pub final_content: String,
    /// When it was compiled.
    pub timestamp: String,
    /// The session, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Params of `session/changed`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedSessionParams {
    /// The session that changed.
    pub session_id: SessionId,
    /// What happened; `created`, `appended`, `changed` only if the host declares
    /// `session/changed`.
    pub reason: SessionChange,
}

/// Params of `tools/listChanged`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListChangedToolsParams {
    /// The session whose tools changed; absent means every session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Progress value: work has begun.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkDoneProgressBegin {
    /// Selects the variant.
    pub kind: String,
    /// Title of the work, such as `Compacting`.
    pub title: String,
    /// Whether cancelling the request stops the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellable: Option<bool>,
    /// Detail that may change as the work goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Percentage done, 0 to 100; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i64>,
}

/// Progress value: work goes on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkDoneProgressReport {
    /// Selects the variant.
    pub kind: String,
    /// Whether cancelling the request stops the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellable: Option<bool>,
    /// Detail of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Percentage done, 0 to 100, never falling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i64>,
}

/// Progress value: work has ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkDoneProgressEnd {
    /// Selects the variant.
    pub kind: String,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Data of ParseError and InvalidRequest.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameErrorData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The bound that was exceeded, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// What every error carries as `data`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
}

/// Data of InvalidParams.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InvalidParamsData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// JSON Pointer into the params; empty for the params as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Values that would be accepted, such as protocol versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<Vec<String>>,
    /// Dialect of the session, if the connection has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_format: Option<MessageFormat>,
}

/// Data of EngineUnavailable.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineUnavailableData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The engine that was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_id: Option<EngineId>,
    /// Host capabilities that the engine requires and the host did not declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_capabilities: Option<Vec<String>>,
}

/// Data of ContextOverflow.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextOverflowData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The smallest budget with which the same request succeeds, in tokens.
    pub required: i64,
    /// The budget that was requested, in tokens.
    pub token_budget: i64,
}

/// Data of SessionNotFound.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotFoundData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The session that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// Data of HostCapabilityMissing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostCapabilityMissingData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// What the host must declare in `hostCapabilities`.
    pub capability: String,
}

/// Data of EngineFailed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineFailedData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The engine that failed.
    pub engine_id: EngineId,
    /// The method that failed.
    pub method: String,
    /// Its error message, without traceback and local paths.
    pub message: String,
}

/// Data of Busy.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BusyData {
    /// True if the same request may succeed later unchanged.
    pub retryable: bool,
    /// What the caller can do about it, in one sentence.
    pub hint: String,
    /// The bound that was reached, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

impl Client {
    /// Sends `context/bootstrap`. Imports the new messages of the host's transcript.
    pub async fn context_bootstrap(
        &self,
        params: &BootstrapContextParams,
    ) -> Result<BootstrapContextResult, Error> {
        self.request("context/bootstrap", params).await
    }

    /// Sends `context/ingest`. Stores one message.
    pub async fn context_ingest(
        &self,
        params: &IngestContextParams,
    ) -> Result<IngestContextResult, Error> {
        self.request("context/ingest", params).await
    }

    /// Sends `context/ingestBatch`. Stores several messages, all or none.
    pub async fn context_ingest_batch(
        &self,
        params: &IngestBatchContextParams,
    ) -> Result<IngestBatchContextResult, Error> {
        self.request("context/ingestBatch", params).await
    }

    /// Sends `context/compact`. Makes the context smaller.
    pub async fn context_compact(
        &self,
        params: &CompactContextParams,
    ) -> Result<CompactContextResult, Error> {
        self.request("context/compact", params).await
    }

    /// Sends `context/afterTurn`. Reports the end of a turn and its messages.
    pub async fn context_after_turn(
        &self,
        params: &AfterTurnContextParams,
    ) -> Result<AfterTurnContextResult, Error> {
        self.request("context/afterTurn", params).await
    }

    /// Sends `context/commitTurn`. Stores a turn exactly once.
    pub async fn context_commit_turn(
        &self,
        params: &CommitTurnContextParams,
    ) -> Result<CommitTurnContextResult, Error> {
        self.request("context/commitTurn", params).await
    }

    /// Sends `context/maintain`. Lets the engine tidy up between turns.
    pub async fn context_maintain(
        &self,
        params: &MaintainContextParams,
    ) -> Result<MaintainContextResult, Error> {
        self.request("context/maintain", params).await
    }

    /// Sends `context/preflight`. Checks whether the context fits before the model is called.
    pub async fn context_preflight(
        &self,
        params: &PreflightContextParams,
    ) -> Result<PreflightContextResult, Error> {
        self.request("context/preflight", params).await
    }

    /// Sends `context/explain`. Explains what the model saw, and why.
    pub async fn context_explain(
        &self,
        params: &ExplainContextParams,
    ) -> Result<ExplainContextResult, Error> {
        self.request("context/explain", params).await
    }

    /// Sends `context/dispose`. Flushes and releases the engine.
    pub async fn context_dispose(
        &self,
        params: &DisposeContextParams,
    ) -> Result<DisposeContextResult, Error> {
        self.request("context/dispose", params).await
    }

    /// Sends `subagent/prepareSpawn`. Prepares the context of a child session.
    pub async fn subagent_prepare_spawn(
        &self,
        params: &PrepareSpawnSubagentParams,
    ) -> Result<PrepareSpawnSubagentResult, Error> {
        self.request("subagent/prepareSpawn", params).await
    }

    /// Sends `subagent/rollbackSpawn`. Rolls back a preparation.
    pub async fn subagent_rollback_spawn(
        &self,
        params: &RollbackSpawnSubagentParams,
    ) -> Result<RollbackSpawnSubagentResult, Error> {
        self.request("subagent/rollbackSpawn", params).await
    }

    /// Sends `subagent/ended`. Reports the end of a child session.
    pub async fn subagent_ended(
        &self,
        params: &EndedSubagentParams,
    ) -> Result<EndedSubagentResult, Error> {
        self.request("subagent/ended", params).await
    }

    /// Sends `tools/list`. Describes the tools that the engine offers to the model.
    pub async fn tools_list(
        &self,
        params: &ListToolsParams,
    ) -> Result<ListToolsResult, Error> {
        self.request("tools/list", params).await
    }

    /// Sends `tools/call`. Runs one of the tools.
    pub async fn tools_call(
        &self,
        params: &CallToolsParams,
    ) -> Result<CallToolsResult, Error> {
        self.request("tools/call", params).await
    }

    /// Sends `memory/register`. Offers the host as a memory source.
    pub async fn memory_register(
        &self,
        params: &RegisterMemoryParams,
    ) -> Result<RegisterMemoryResult, Error> {
        self.request("memory/register", params).await
    }

    /// Sends `memory/unregister`. Withdraws a memory source.
    pub async fn memory_unregister(
        &self,
        params: &UnregisterMemoryParams,
    ) -> Result<UnregisterMemoryResult, Error> {
        self.request("memory/unregister", params).await
    }

    /// Sends `memory/compile`. Asks all memory sources and composes one text.
    pub async fn memory_compile(
        &self,
        params: &CompileMemoryParams,
    ) -> Result<CompileMemoryResult, Error> {
        self.request("memory/compile", params).await
    }

    /// Sends `engine/list`. Lists the engines that the server knows.
    pub async fn engine_list(
        &self,
        params: &ListEngineParams,
    ) -> Result<ListEngineResult, Error> {
        self.request("engine/list", params).await
    }

    /// Sends `engine/doctor`. Finds problems and says how to fix them.
    pub async fn engine_doctor(
        &self,
        params: &DoctorEngineParams,
    ) -> Result<DoctorEngineResult, Error> {
        self.request("engine/doctor", params).await
    }

    /// Sends `session/configure`. Selects engine and settings for a session or an agent.
    pub async fn session_configure(
        &self,
        params: &ConfigureSessionParams,
    ) -> Result<ConfigureSessionResult, Error> {
        self.request("session/configure", params).await
    }

    /// Sends `session/pin`. Keeps a message or a text through every compaction.
    pub async fn session_pin(
        &self,
        params: &PinSessionParams,
    ) -> Result<PinSessionResult, Error> {
        self.request("session/pin", params).await
    }

    /// Sends `session/unpin`. Removes a pin.
    pub async fn session_unpin(
        &self,
        params: &UnpinSessionParams,
    ) -> Result<UnpinSessionResult, Error> {
        self.request("session/unpin", params).await
    }

    /// Sends `session/pins`. Lists the pins.
    pub async fn session_pins(
        &self,
        params: &PinsSessionParams,
    ) -> Result<PinsSessionResult, Error> {
        self.request("session/pins", params).await
    }

    /// Sends `session/truncate`. Removes everything after a message.
    pub async fn session_truncate(
        &self,
        params: &TruncateSessionParams,
    ) -> Result<TruncateSessionResult, Error> {
        self.request("session/truncate", params).await
    }

    /// Sends `session/fork`. Copies a session under a new id.
    pub async fn session_fork(
        &self,
        params: &ForkSessionParams,
    ) -> Result<ForkSessionResult, Error> {
        self.request("session/fork", params).await
    }

    /// Sends `session/summaries`. Lists the summaries in force.
    pub async fn session_summaries(
        &self,
        params: &SummariesSessionParams,
    ) -> Result<SummariesSessionResult, Error> {
        self.request("session/summaries", params).await
    }

    /// Sends `session/list`. Lists the sessions of the namespace, page by page.
    pub async fn session_list(
        &self,
        params: &ListSessionParams,
    ) -> Result<ListSessionResult, Error> {
        self.request("session/list", params).await
    }

    /// Sends `session/get`. Returns the key facts of one session.
    pub async fn session_get(
        &self,
        params: &GetSessionParams,
    ) -> Result<GetSessionResult, Error> {
        self.request("session/get", params).await
    }

    /// Sends `session/export`. Returns the stored messages, page by page.
    pub async fn session_export(
        &self,
        params: &ExportSessionParams,
    ) -> Result<ExportSessionResult, Error> {
        self.request("session/export", params).await
    }

    /// Sends `session/delete`. Erases a session.
    pub async fn session_delete(
        &self,
        params: &DeleteSessionParams,
    ) -> Result<DeleteSessionResult, Error> {
        self.request("session/delete", params).await
    }
}

/// The body is not JSON text in UTF-8, is empty, or has another charset. Its data is
/// [`FrameErrorData`].
pub const PARSE_ERROR: i64 = -32700;

/// The message is not a single JSON-RPC request, its length is unusable, its id is taken, or it
/// comes at the wrong time. Its data is [`FrameErrorData`].
pub const INVALID_REQUEST: i64 = -32600;

/// The server has no method of this name. Its data is [`ErrorData`].
pub const METHOD_NOT_FOUND: i64 = -32601;

/// The params are not an object, or a member is missing, of the wrong type, or not acceptable.
/// Its data is [`InvalidParamsData`].
pub const INVALID_PARAMS: i64 = -32602;

/// The server has a defect. Its data is [`ErrorData`].
pub const INTERNAL_ERROR: i64 = -32603;

/// A request came before initialize has succeeded. Its data is [`ErrorData`].
pub const SERVER_NOT_INITIALIZED: i64 = -32002;

/// The request was cancelled and has had no effect. Its data is [`ErrorData`].
pub const REQUEST_CANCELLED: i64 = -32800;

/// The selected engine cannot be found, is configured wrongly, or needs a capability of the
/// host. Its data is [`EngineUnavailableData`].
pub const ENGINE_UNAVAILABLE: i64 = 1001;

/// Not even the smallest valid context fits the token budget. Its data is
/// [`ContextOverflowData`].
pub const CONTEXT_OVERFLOW: i64 = 1002;

/// The session does not exist in this namespace, or belongs to another agent. Its data is
/// [`SessionNotFoundData`].
pub const SESSION_NOT_FOUND: i64 = 1003;

/// The request needs a capability that the host does not declare. Its data is
/// [`HostCapabilityMissingData`].
pub const HOST_CAPABILITY_MISSING: i64 = 1004;

/// The engine raised an error or took too long. Its data is [`EngineFailedData`].
pub const ENGINE_FAILED: i64 = 1005;

/// The store cannot be opened, read or written. Its data is [`ErrorData`].
pub const STORE_UNAVAILABLE: i64 = 1006;

/// The server's queue of waiting requests is full. Its data is [`BusyData`].
pub const BUSY: i64 = 1007;
