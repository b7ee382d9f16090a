// Code generated from sidecar/protocol by `make schema`; DO NOT EDIT.

package contextsidecar

import (
	"context"
	"encoding/json"
	"time"
)

// ProtocolVersion is the newest version of the protocol that these types describe.
const ProtocolVersion = "1.0"

// TraceValue: Trace level of the server.
type TraceValue string

// Values of TraceValue that this version knows.
const (
	TraceValueOff      TraceValue = "off"
	TraceValueMessages TraceValue = "messages"
	TraceValueVerbose  TraceValue = "verbose"
)

// HostCapability: Capability that a host can declare; servers ignore unknown names.
type HostCapability string

// Values of HostCapability that this version knows.
const (
	HostCapabilityRuntimeComplete          HostCapability = "runtime/complete"
	HostCapabilityRuntimeCompact           HostCapability = "runtime/compact"
	HostCapabilityRuntimeRewriteTranscript HostCapability = "runtime/rewriteTranscript"
	HostCapabilityMemoryGetContext         HostCapability = "memory/getContext"
	HostCapabilitySessionChanged           HostCapability = "session/changed"
	HostCapabilityAssembleDelta            HostCapability = "assembleDelta"
	HostCapabilityOwnsHistory              HostCapability = "ownsHistory"
)

// MessageFormat: Dialect of messages: chat completions, Responses items, Anthropic messages, pi
// AgentMessage.
type MessageFormat string

// Values of MessageFormat that this version knows.
const (
	MessageFormatOpenai          MessageFormat = "openai"
	MessageFormatOpenaiResponses MessageFormat = "openai-responses"
	MessageFormatAnthropic       MessageFormat = "anthropic"
	MessageFormatOpenclaw        MessageFormat = "openclaw"
)

// EngineID: Id by which an engine is selected.
type EngineID = string

// MaintenanceMode: Whether the host waits for `context/maintain` before it continues.
type MaintenanceMode string

// Values of MaintenanceMode that this version knows.
const (
	MaintenanceModeForeground MaintenanceMode = "foreground"
	MaintenanceModeBackground MaintenanceMode = "background"
)

// RequestID: Chosen by the sender; unique among its requests in flight.
type RequestID = any

// MessageType: 1 error, 2 warning, 3 info, 4 log, 5 debug.
type MessageType int

// SessionID: Name of a session as the host spells it: a key, never a path; 1 to 1024 code points, no
// NUL.
type SessionID = string

// SessionKey: Alias of a session.
type SessionKey = string

// AgentID: Name of an agent, which owns sessions.
type AgentID = string

// Message: One message in the dialect of the connection; has `role` or `type`. The server reads what
// it needs and hands the whole object back byte for byte.
type Message = json.RawMessage

// MessageID: Id of a message within its session.
type MessageID = string

// TurnID: Name of a turn within its session.
type TurnID = string

// ResultID: Id of an assembled answer, unique in the store.
type ResultID = string

// Projection: Backend that keeps its own thread; the server refuses others.
type Projection string

// Values of Projection that this version knows.
const (
	ProjectionCodex Projection = "codex"
)

// PromptAuthority: Whose estimate the host should trust before it calls the model.
type PromptAuthority string

// Values of PromptAuthority that this version knows.
const (
	PromptAuthorityAssembled              PromptAuthority = "assembled"
	PromptAuthorityPreassemblyMayOverflow PromptAuthority = "preassembly_may_overflow"
)

// ContentKind: Where a part of the context comes from.
type ContentKind string

// Values of ContentKind that this version knows.
const (
	ContentKindSystem      ContentKind = "system"
	ContentKindSummary     ContentKind = "summary"
	ContentKindActivityLog ContentKind = "activityLog"
	ContentKindRecent      ContentKind = "recent"
	ContentKindMemory      ContentKind = "memory"
	ContentKindRecall      ContentKind = "recall"
)

// ProjectionMode: `per_turn` goes with every turn, `thread_bootstrap` begins a new thread.
type ProjectionMode string

// Values of ProjectionMode that this version knows.
const (
	ProjectionModePerTurn         ProjectionMode = "per_turn"
	ProjectionModeThreadBootstrap ProjectionMode = "thread_bootstrap"
)

// CompactionTarget: Compact to the budget, or to the engine's own threshold; other values are refused.
type CompactionTarget string

// Values of CompactionTarget that this version knows.
const (
	CompactionTargetBudget    CompactionTarget = "budget"
	CompactionTargetThreshold CompactionTarget = "threshold"
)

// CommitStatus: Outcome of committing a turn.
type CommitStatus string

// Values of CommitStatus that this version knows.
const (
	CommitStatusCommitted CommitStatus = "committed"
	CommitStatusDuplicate CommitStatus = "duplicate"
)

// PreflightAction: How the host should react before it calls the model.
type PreflightAction string

// Values of PreflightAction that this version knows.
const (
	PreflightActionNone    PreflightAction = "none"
	PreflightActionCompact PreflightAction = "compact"
)

// Decision: What became of a stored message in an answer.
type Decision string

// Values of Decision that this version knows.
const (
	DecisionSent       Decision = "sent"
	DecisionSummarised Decision = "summarised"
	DecisionStubbed    Decision = "stubbed"
	DecisionDropped    Decision = "dropped"
	DecisionPinned     Decision = "pinned"
)

// InjectionPoint: When a memory source is asked: once per session, or for every prompt.
type InjectionPoint string

// Values of InjectionPoint that this version knows.
const (
	InjectionPointSessionStart InjectionPoint = "session-start"
	InjectionPointPerMessage   InjectionPoint = "per-message"
)

// SpawnMode: `fork` starts the child from a snapshot of the parent, `isolated` starts it empty; the
// server refuses others.
type SpawnMode string

// Values of SpawnMode that this version knows.
const (
	SpawnModeFork     SpawnMode = "fork"
	SpawnModeIsolated SpawnMode = "isolated"
)

// EndReason: Why a child session has ended; `deleted` erases its data, every other reason keeps it.
type EndReason string

// Values of EndReason that this version knows.
const (
	EndReasonDeleted   EndReason = "deleted"
	EndReasonCompleted EndReason = "completed"
	EndReasonSwept     EndReason = "swept"
	EndReasonReleased  EndReason = "released"
)

// ImportState: State of an unfinished import.
type ImportState string

// Values of ImportState that this version knows.
const (
	ImportStateRunning     ImportState = "running"
	ImportStateInterrupted ImportState = "interrupted"
)

// CompletionPurpose: What a completion is for; a host may choose another model for each.
type CompletionPurpose string

// Values of CompletionPurpose that this version knows.
const (
	CompletionPurposeSummary   CompletionPurpose = "summary"
	CompletionPurposeCondense  CompletionPurpose = "condense"
	CompletionPurposeSynthesis CompletionPurpose = "synthesis"
	CompletionPurposeQuery     CompletionPurpose = "query"
)

// PromptRole: Who speaks in a completion.
type PromptRole string

// Values of PromptRole that this version knows.
const (
	PromptRoleUser      PromptRole = "user"
	PromptRoleAssistant PromptRole = "assistant"
)

// SessionChange: What happened to a session; `changed` is a change by another process.
type SessionChange string

// Values of SessionChange that this version knows.
const (
	SessionChangeConfigured SessionChange = "configured"
	SessionChangePinned     SessionChange = "pinned"
	SessionChangeUnpinned   SessionChange = "unpinned"
	SessionChangeTruncated  SessionChange = "truncated"
	SessionChangeCompacted  SessionChange = "compacted"
	SessionChangeMaintained SessionChange = "maintained"
	SessionChangeDeleted    SessionChange = "deleted"
	SessionChangeCreated    SessionChange = "created"
	SessionChangeAppended   SessionChange = "appended"
	SessionChangeChanged    SessionChange = "changed"
)

// InitializeParams: Params of `initialize`: those of the Language Server Protocol.
type InitializeParams struct {
	// Process id of the host, `null` for none; the server ends when a host that was alive dies.
	ProcessID *int64 `json:"processId,omitempty"`

	// The client program.
	ClientInfo *PeerInfo `json:"clientInfo,omitempty"`

	// Language of the user, an IETF tag.
	Locale string `json:"locale,omitempty"`

	// Folder of the workspace, `null` if none is open; superseded by `rootUri`.
	RootPath string `json:"rootPath,omitempty"`

	// Folder of the workspace, `null` if none is open.
	RootURI string `json:"rootUri,omitempty"`

	// Client capabilities of the Language Server Protocol.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`

	// Options of the client.
	InitializationOptions *InitializationOptions `json:"initializationOptions,omitempty"`

	// Initial trace level.
	Trace TraceValue `json:"trace,omitempty"`

	// Folders of the workspace.
	WorkspaceFolders json.RawMessage `json:"workspaceFolders,omitempty"`

	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// PeerInfo: Name and version of a program, as in the Language Server Protocol.
type PeerInfo struct {
	// Name of the program.
	Name string `json:"name"`

	// Its version.
	Version string `json:"version,omitempty"`
}

// InitializationOptions: The client's initialization options; this protocol uses only `contextEngine`.
type InitializationOptions struct {
	// What the host requests of the server.
	ContextEngine *ContextEngineOptions `json:"contextEngine,omitempty"`
}

// ContextEngineOptions: What the host asks of the server, under `initializationOptions.contextEngine`.
type ContextEngineOptions struct {
	// Version that the host speaks; absent means the newest.
	ProtocolVersion string `json:"protocolVersion,omitempty"`

	// The agent runtime.
	Host *HostInfo `json:"host,omitempty"`

	// Requests that the host answers, `session/changed`, `assembleDelta` and `ownsHistory`; unknown names
	// are ignored.
	HostCapabilities []HostCapability `json:"hostCapabilities,omitzero"`

	// Dialect of every message on this connection. Absent means openai.
	MessageFormat MessageFormat `json:"messageFormat,omitempty"`

	// Id of the engine to use; overrides the configured slot.
	Engine EngineID `json:"engine,omitempty"`

	// Separates hosts that share a store; defaults to `host.id`, else `default`.
	Namespace string `json:"namespace,omitempty"`

	// Overrides in the shape of the configuration file.
	Config json.RawMessage `json:"config,omitempty"`
}

// HostInfo: The agent runtime behind the connection.
type HostInfo struct {
	// Short name of the runtime, such as `openclaw`; the default namespace.
	ID string `json:"id"`

	// Version of the runtime.
	Version string `json:"version,omitempty"`
}

// InitializeResult: Result of `initialize`: settings are valid and the store is open.
type InitializeResult struct {
	// What the server offers.
	Capabilities ServerCapabilities `json:"capabilities"`

	// The server program.
	ServerInfo PeerInfo `json:"serverInfo"`
}

// ServerCapabilities: Server capabilities of the Language Server Protocol, including those for
// editors.
type ServerCapabilities struct {
	// Capabilities of this protocol.
	Experimental ExperimentalCapabilities `json:"experimental"`
}

// ExperimentalCapabilities: Capabilities outside the Language Server Protocol.
type ExperimentalCapabilities struct {
	// What the server offers to agent runtimes.
	ContextEngine ContextEngineCapabilities `json:"contextEngine"`
}

// ContextEngineCapabilities: What the server offers, under `capabilities.experimental.contextEngine`.
type ContextEngineCapabilities struct {
	// Version that both sides speak from now on.
	ProtocolVersion string `json:"protocolVersion"`

	// The engine that serves this connection.
	Engine EngineInfo `json:"engine"`

	// Requests and notifications of this protocol that the server accepts.
	Methods []string `json:"methods"`

	// Names of the tools that `tools/list` describes.
	Tools []string `json:"tools"`

	// Dialects that the server supports.
	MessageFormats []MessageFormat `json:"messageFormats"`

	// Limits of the connection.
	Limits Limits `json:"limits"`
}

// EngineInfo: Description of a context engine.
type EngineInfo struct {
	// Id by which hosts and configuration select the engine.
	ID string `json:"id"`

	// Name for people.
	Name string `json:"name"`

	// Version of the engine.
	Version string `json:"version"`

	// True if the engine compacts, so that the host must not.
	OwnsCompaction bool `json:"ownsCompaction"`

	// Whether the host waits for `context/maintain` before it continues.
	TurnMaintenanceMode MaintenanceMode `json:"turnMaintenanceMode"`

	// Methods that the engine implements itself, such as `afterTurn`; the server answers the others.
	Implements []string `json:"implements"`

	// Host capabilities without which the engine refuses to start.
	HostRequirements []string `json:"hostRequirements,omitzero"`

	// Present if this engine replaces the selected one.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// FallbackFor: The engine that was selected but could not serve.
type FallbackFor struct {
	// Id of the engine that was selected.
	ID string `json:"id"`

	// Why it could not serve, and what to fix.
	Reason string `json:"reason"`
}

// Limits: Limits of this connection.
type Limits struct {
	// Largest body of one message, in bytes.
	MaxMessageBytes int64 `json:"maxMessageBytes"`

	// Maximum concurrent requests; further ones are parked.
	MaxInFlight int64 `json:"maxInFlight"`

	// Bytes of parked requests beyond which a request is refused with Busy.
	MaxParkedBytes int64 `json:"maxParkedBytes"`

	// How long the server waits for the host's answer, in milliseconds.
	HostRequestTimeoutMS int64 `json:"hostRequestTimeoutMs"`

	// Budget of requests that name none, in tokens.
	DefaultTokenBudget int64 `json:"defaultTokenBudget"`
}

// InitializedParams: Params of `initialized`: empty.
type InitializedParams struct{}

// ShutdownParams: Params of `shutdown`: empty.
type ShutdownParams struct{}

// ExitParams: Params of `exit`: empty.
type ExitParams struct{}

// CancelRequestParams: Params of `$/cancelRequest`.
type CancelRequestParams struct {
	// Id of the request to cancel.
	ID RequestID `json:"id"`
}

// ProgressParams: Params of `$/progress`.
type ProgressParams struct {
	// The token of the work.
	Token any `json:"token"`

	// A WorkDoneProgressBegin, WorkDoneProgressReport or WorkDoneProgressEnd.
	Value json.RawMessage `json:"value"`
}

// SetTraceParams: Params of `$/setTrace`.
type SetTraceParams struct {
	// Trace level from now on.
	Value TraceValue `json:"value"`
}

// LogMessageWindowParams: Params of `window/logMessage`.
type LogMessageWindowParams struct {
	// 1 error, 2 warning, 3 info, 4 log, 5 debug.
	Type MessageType `json:"type"`

	// The line to log.
	Message string `json:"message"`
}

// CreateWindowWorkDoneProgressParams: Params of `window/workDoneProgress/create`.
type CreateWindowWorkDoneProgressParams struct {
	// Token under which the server will report progress.
	Token any `json:"token"`
}

// CancelWindowWorkDoneProgressParams: Params of `window/workDoneProgress/cancel`.
type CancelWindowWorkDoneProgressParams struct {
	// Token of the work to stop.
	Token any `json:"token"`
}

// BootstrapContextParams: Params of `context/bootstrap`.
type BootstrapContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The host's whole transcript; takes precedence over `sessionFile`.
	Messages []Message `json:"messages,omitzero"`

	// Locator of the host's transcript file.
	SessionFile string `json:"sessionFile,omitempty"`

	// Name of the importer for the file; if absent, the server detects it.
	SessionFileFormat string `json:"sessionFileFormat,omitempty"`

	// Import in steps; meanwhile reading requests proceed and storing requests wait for the end.
	Background *bool `json:"background,omitempty"`
}

// BootstrapContextResult: Result of `context/bootstrap`.
type BootstrapContextResult struct {
	// True if new messages were stored.
	Bootstrapped bool `json:"bootstrapped"`

	// How many messages were stored.
	ImportedMessages int64 `json:"importedMessages"`

	// Why nothing was stored.
	Reason string `json:"reason,omitempty"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// IngestContextParams: Params of `context/ingest`.
type IngestContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The message to store.
	Message Message `json:"message"`

	// The host's id of the message; takes precedence over an id inside the message.
	MessageID MessageID `json:"messageId,omitempty"`

	// The host's name of the turn.
	TurnID TurnID `json:"turnId,omitempty"`

	// When the message was created; defaults to its own timestamp, else to now.
	Timestamp time.Time `json:"timestamp,omitzero"`

	// True for a message that only keeps the agent awake.
	IsHeartbeat *bool `json:"isHeartbeat,omitempty"`
}

// IngestContextResult: Result of `context/ingest`.
type IngestContextResult struct {
	// False if nothing was stored.
	Ingested bool `json:"ingested"`

	// Id under which the message is stored.
	MessageID MessageID `json:"messageId"`

	// The turn of the message; empty if nothing is stored, as with `legacy`.
	TurnID string `json:"turnId"`

	// The message as people should see it, if different.
	DisplayMessage Message `json:"displayMessage,omitempty"`

	// Why nothing was stored, such as `duplicate` or `conflict`.
	Reason string `json:"reason,omitempty"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// IngestBatchContextParams: Params of `context/ingestBatch`.
type IngestBatchContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The messages to store, all or none, in this order.
	Messages []Message `json:"messages"`

	// The host's ids, one for each message; `null` if it has none.
	MessageIDs []*string `json:"messageIds,omitzero"`

	// True if the messages only keep the agent awake.
	IsHeartbeat *bool `json:"isHeartbeat,omitempty"`
}

// IngestBatchContextResult: Result of `context/ingestBatch`.
type IngestBatchContextResult struct {
	// Number of messages stored; known ones do not count.
	IngestedCount int64 `json:"ingestedCount"`

	// Ids under which the messages are stored, one for each.
	MessageIDs []MessageID `json:"messageIds"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// AssembleContextParams: Params of `context/assemble`.
type AssembleContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Maximum tokens of the answer; defaults to `limits.defaultTokenBudget`.
	TokenBudget int64 `json:"tokenBudget,omitempty"`

	// The host's transcript; replaces the live tail of the session.
	Messages []Message `json:"messages,omitzero"`

	// The user's text of this turn, if the host adds the message itself.
	Prompt string `json:"prompt,omitempty"`

	// Model that will read the answer.
	Model string `json:"model,omitempty"`

	// Names of the tools that the model may call.
	AvailableTools []string `json:"availableTools,omitzero"`

	// How memory should cite its sources; for engines, not for the server.
	CitationsMode string `json:"citationsMode,omitempty"`

	// Request `edits` against this earlier result; needs `assembleDelta`.
	PreviousResultID ResultID `json:"previousResultId,omitempty"`

	// Also request a `contextProjection`.
	Projection Projection `json:"projection,omitempty"`
}

// AssembleContextResult: Result of `context/assemble`; has either `messages` or `edits`. Exactly one
// of Messages, Edits is present.
type AssembleContextResult struct {
	// What the model should see, in this order.
	Messages []Message `json:"messages,omitzero"`

	// Differences from the previous result, ascending; positions refer to the previous list.
	Edits []MessageEdit `json:"edits,omitzero"`

	// Tokens of messages and additions together; a reserved prompt comes on top.
	EstimatedTokens int64 `json:"estimatedTokens"`

	// Rises when an earlier message is removed, summarised, replaced or moved.
	ContextEpoch int64 `json:"contextEpoch"`

	// Where a cache breakpoint belongs.
	StablePrefix StablePrefix `json:"stablePrefix"`

	// Identifies this result for `previousResultId` and `context/explain`.
	ResultID ResultID `json:"resultId"`

	// Tokens and messages by kind of content.
	Composition []CompositionPart `json:"composition"`

	// Text to append to the host's system prompt.
	SystemPromptAddition string `json:"systemPromptAddition,omitempty"`

	// Text to append to this turn's user message, and to store with it.
	UserMessageAppend string `json:"userMessageAppend,omitempty"`

	// Whose estimate the host should trust before it calls the model.
	PromptAuthority PromptAuthority `json:"promptAuthority,omitempty"`

	// Present if `projection` requested it.
	ContextProjection *ContextProjection `json:"contextProjection,omitempty"`

	// Present if another engine gave this answer, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// MessageEdit: One change of an earlier list of messages.
type MessageEdit struct {
	// Index in the previous list where the change begins.
	Start int64 `json:"start"`

	// How many messages of the previous list go.
	DeleteCount int64 `json:"deleteCount"`

	// What comes in their place.
	Messages []Message `json:"messages"`
}

// StablePrefix: The part of the list that the next result of the same epoch repeats.
type StablePrefix struct {
	// Messages in it: a cache breakpoint belongs after them.
	MessageCount int64 `json:"messageCount"`

	// Tokens in it.
	Tokens int64 `json:"tokens"`
}

// CompositionPart: The share of the answer that one kind of content takes.
type CompositionPart struct {
	// Where the content comes from.
	Kind ContentKind `json:"kind"`

	// Its tokens; all parts sum to `estimatedTokens`.
	Tokens int64 `json:"tokens"`

	// Its messages; all parts sum to the length of the list.
	MessageCount int64 `json:"messageCount"`
}

// ContextProjection: The context for a backend that keeps its own thread.
type ContextProjection struct {
	// `per_turn` goes with every turn, `thread_bootstrap` begins a new thread.
	Mode ProjectionMode `json:"mode"`

	// Identifies the thread: if the value differs, the backend must start a new one.
	Epoch string `json:"epoch"`

	// Hash of the projection's source.
	Fingerprint string `json:"fingerprint"`

	// What goes before the conversation.
	DeveloperInstructions string `json:"developerInstructions"`

	// The user's text.
	Prompt string `json:"prompt"`
}

// CompactContextParams: Params of `context/compact`.
type CompactContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Maximum tokens of the context afterwards.
	TokenBudget int64 `json:"tokenBudget,omitempty"`

	// Compact even if the context fits.
	Force *bool `json:"force,omitempty"`

	// Why it is forced, such as `overflow` or `manual`.
	ForceReason string `json:"forceReason,omitempty"`

	// The host's own count, if it has one.
	CurrentTokenCount *int64 `json:"currentTokenCount,omitempty"`

	// Compact down to the budget, or to the engine's own threshold.
	CompactionTarget CompactionTarget `json:"compactionTarget,omitempty"`

	// What the summary should focus on.
	CustomInstructions string `json:"customInstructions,omitempty"`
}

// CompactContextResult: Result of `context/compact`.
type CompactContextResult struct {
	// False if something failed; declining is not a failure.
	Ok bool `json:"ok"`

	// True if the context has changed.
	Compacted bool `json:"compacted"`

	// Why nothing was compacted.
	Reason string `json:"reason,omitempty"`

	// What was done.
	Result *CompactionResult `json:"result,omitempty"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// CompactionResult: What a compaction did.
type CompactionResult struct {
	// The summary that now covers older messages.
	Summary string `json:"summary,omitempty"`

	// The oldest message that is still sent in full.
	FirstKeptMessageID MessageID `json:"firstKeptMessageId,omitempty"`

	// Tokens of the context before.
	TokensBefore int64 `json:"tokensBefore"`

	// Tokens of the context now.
	TokensAfter *int64 `json:"tokensAfter,omitempty"`

	// Further details from the engine.
	Details json.RawMessage `json:"details,omitempty"`
}

// AfterTurnContextParams: Params of `context/afterTurn`.
type AfterTurnContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The turn's new messages; the whole transcript if `prePromptMessageCount` is given.
	Messages []Message `json:"messages,omitzero"`

	// How many of the messages precede the prompt.
	PrePromptMessageCount *int64 `json:"prePromptMessageCount,omitempty"`

	// Maximum tokens of the next turn's context.
	TokenBudget int64 `json:"tokenBudget,omitempty"`

	// The provider's usage object, unchanged.
	Usage json.RawMessage `json:"usage,omitempty"`

	// True if the turn only kept the agent awake.
	IsHeartbeat *bool `json:"isHeartbeat,omitempty"`

	// Summary that the host wrote when it compacted on its own.
	AutoCompactionSummary string `json:"autoCompactionSummary,omitempty"`
}

// AfterTurnContextResult: Result of `context/afterTurn`: empty if all went well.
type AfterTurnContextResult struct {
	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// CommitTurnContextParams: Params of `context/commitTurn`.
type CommitTurnContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Names the turn; each key is committed only once.
	AdvancementKey string `json:"advancementKey"`

	// The turn's messages.
	Messages []Message `json:"messages"`

	// True if the turn only kept the agent awake.
	IsHeartbeat *bool `json:"isHeartbeat,omitempty"`

	// The host's receipt for the prompt; never interpreted.
	Admission json.RawMessage `json:"admission,omitempty"`

	// The host's receipt for the end of the turn; never interpreted.
	Terminal json.RawMessage `json:"terminal,omitempty"`
}

// CommitTurnContextResult: Result of `context/commitTurn`.
type CommitTurnContextResult struct {
	// `duplicate` if the key was committed before.
	Status CommitStatus `json:"status"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// MaintainContextParams: Params of `context/maintain`.
type MaintainContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Maximum tokens of the context.
	TokenBudget int64 `json:"tokenBudget,omitempty"`
}

// MaintainContextResult: Result of `context/maintain`.
type MaintainContextResult struct {
	// True if the host's transcript was rewritten.
	Changed bool `json:"changed"`

	// Number of bytes by which it shrank.
	BytesFreed int64 `json:"bytesFreed"`

	// How many of its messages were rewritten.
	RewrittenEntries int64 `json:"rewrittenEntries"`

	// Why nothing was done.
	Reason string `json:"reason,omitempty"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// PreflightContextParams: Params of `context/preflight`.
type PreflightContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Maximum tokens of the context.
	TokenBudget int64 `json:"tokenBudget"`

	// The host's transcript; replaces the live tail of the session.
	Messages []Message `json:"messages,omitzero"`

	// Tokens that the host is about to add.
	PendingTokens *int64 `json:"pendingTokens,omitempty"`
}

// PreflightContextResult: Result of `context/preflight`.
type PreflightContextResult struct {
	// True if the context and the pending tokens fit the budget.
	Fits bool `json:"fits"`

	// Tokens of both together.
	EstimatedTokens int64 `json:"estimatedTokens"`

	// How the host should react before it calls the model.
	Action PreflightAction `json:"action"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// ExplainContextParams: Params of `context/explain`; without `resultId` and `turnId`, the newest
// answer.
type ExplainContextParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Id of an assemble result; takes precedence over `turnId`.
	ResultID ResultID `json:"resultId,omitempty"`

	// The newest assemble result of this turn.
	TurnID TurnID `json:"turnId,omitempty"`
}

// ExplainContextResult: Result of `context/explain`.
type ExplainContextResult struct {
	// One for each stored message that was considered, oldest first.
	Decisions []ContextDecision `json:"decisions"`

	// What was added from elsewhere.
	Injected []InjectedItem `json:"injected"`
}

// ContextDecision: What became of one stored message in an answer.
type ContextDecision struct {
	// The message.
	MessageID MessageID `json:"messageId"`

	// The turn that it belongs to.
	TurnID TurnID `json:"turnId"`

	// Its own size, in tokens.
	Tokens int64 `json:"tokens"`

	// What happened to it.
	Decision Decision `json:"decision"`

	// Why.
	Reason string `json:"reason"`

	// What covers it: a summary's node id, or the rule that left it out.
	By string `json:"by,omitempty"`
}

// InjectedItem: Content of an answer that is not a message of the session.
type InjectedItem struct {
	// The memory source or engine that it came from.
	PluginName string `json:"pluginName"`

	// When its source was asked: at session start, or for this prompt.
	InjectionPoint InjectionPoint `json:"injectionPoint"`

	// Its size, in tokens.
	Tokens int64 `json:"tokens"`

	// The text.
	Content string `json:"content"`

	// Id of the piece within its source.
	ID string `json:"id,omitempty"`
}

// DisposeContextParams: Params of `context/dispose`.
type DisposeContextParams struct {
	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// DisposeContextResult: Result of `context/dispose`: empty.
type DisposeContextResult struct{}

// PrepareSpawnSubagentParams: Params of `subagent/prepareSpawn`.
type PrepareSpawnSubagentParams struct {
	// Key of the session that spawns.
	ParentSessionKey SessionKey `json:"parentSessionKey"`

	// Key of the session that is about to begin.
	ChildSessionKey SessionKey `json:"childSessionKey"`

	// `fork` starts the child from a snapshot of the parent, `isolated` starts it empty.
	ContextMode SpawnMode `json:"contextMode"`

	// Id of the parent's session, if the host knows it.
	ParentSessionID SessionID `json:"parentSessionId,omitempty"`

	// Id of the child's session, if the host knows it.
	ChildSessionID SessionID `json:"childSessionId,omitempty"`

	// The host's locator of the parent's transcript; never opened.
	ParentSessionFile string `json:"parentSessionFile,omitempty"`

	// The host's locator of the child's transcript; never opened.
	ChildSessionFile string `json:"childSessionFile,omitempty"`

	// The agent that spawns; it can fork only its own sessions.
	AgentID AgentID `json:"agentId,omitempty"`

	// Owner of the child; defaults to `agentId`.
	ChildAgentID AgentID `json:"childAgentId,omitempty"`

	// Milliseconds after which the preparation is swept.
	TtlMS int64 `json:"ttlMs,omitempty"`

	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// PrepareSpawnSubagentResult: Result of `subagent/prepareSpawn`.
type PrepareSpawnSubagentResult struct {
	// Id for `subagent/rollbackSpawn`; absent if nothing was prepared.
	PreparationID string `json:"preparationId,omitempty"`
}

// RollbackSpawnSubagentParams: Params of `subagent/rollbackSpawn`.
type RollbackSpawnSubagentParams struct {
	// The preparation to roll back.
	PreparationID string `json:"preparationId"`

	// The agent that spawned; preparations of other agents are unknown to it.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// RollbackSpawnSubagentResult: Result of `subagent/rollbackSpawn`.
type RollbackSpawnSubagentResult struct {
	// False if the preparation is unknown, or the child has already stored something.
	RolledBack bool `json:"rolledBack"`
}

// EndedSubagentParams: Params of `subagent/ended`.
type EndedSubagentParams struct {
	// Key of the session that has ended.
	ChildSessionKey SessionKey `json:"childSessionKey"`

	// `deleted` erases the child's data, if it was spawned; the other reasons keep it.
	Reason EndReason `json:"reason"`

	// The agent that spawned; children of other agents are left alone.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// EndedSubagentResult: Result of `subagent/ended`: empty.
type EndedSubagentResult struct{}

// ListToolsParams: Params of `tools/list`.
type ListToolsParams struct {
	// List the tools of this session's engine; absent means the connection's engine.
	SessionID SessionID `json:"sessionId,omitempty"`

	// Agent that requests the list.
	AgentID AgentID `json:"agentId,omitempty"`
}

// ListToolsResult: Result of `tools/list`.
type ListToolsResult struct {
	// The tools that the engine offers; may be empty.
	Tools []ToolDefinition `json:"tools"`
}

// ToolDefinition: A tool that the host may offer to its model.
type ToolDefinition struct {
	// Name under which `tools/call` knows the tool.
	Name string `json:"name"`

	// What the tool does, written for the model.
	Description string `json:"description"`

	// JSON Schema of the arguments.
	InputSchema json.RawMessage `json:"inputSchema"`
}

// CallToolsParams: Params of `tools/call`.
type CallToolsParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Name of the tool, as `tools/list` gave it.
	Name string `json:"name"`

	// Arguments that satisfy the tool's input schema; absent means an empty object.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// CallToolsResult: Result of `tools/call`.
type CallToolsResult struct {
	// The content for the model.
	Content []TextContent `json:"content"`

	// The same content for programs, in the tool's own format.
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`

	// True if the tool ran and failed; the content says why.
	IsError *bool `json:"isError,omitempty"`
}

// TextContent: A piece of text output of a tool.
type TextContent struct {
	// Selects the variant.
	Type string `json:"type"`

	// The text, at most 16 000 characters.
	Text string `json:"text"`
}

// RegisterMemoryParams: Params of `memory/register`.
type RegisterMemoryParams struct {
	// Name of the source; the same name replaces an earlier registration.
	Name string `json:"name"`

	// When to ask the source.
	InjectionPoints []InjectionPoint `json:"injectionPoints"`

	// Maximum tokens of this source in one compilation.
	TokenBudget int64 `json:"tokenBudget,omitempty"`
}

// RegisterMemoryResult: Result of `memory/register`.
type RegisterMemoryResult struct {
	// Always true: the source is asked from now on, as long as the connection lives.
	Registered bool `json:"registered"`
}

// UnregisterMemoryParams: Params of `memory/unregister`.
type UnregisterMemoryParams struct {
	// Name of the source.
	Name string `json:"name"`
}

// UnregisterMemoryResult: Result of `memory/unregister`.
type UnregisterMemoryResult struct {
	// False if no source of this name was registered.
	Unregistered bool `json:"unregistered"`
}

// CompileMemoryParams: Params of `memory/compile`.
type CompileMemoryParams struct {
	// Agent for whose prompt this is.
	AgentID AgentID `json:"agentId"`

	// Which sources to ask.
	InjectionPoint InjectionPoint `json:"injectionPoint"`

	// The session; if given, fragments already injected into it are left out.
	SessionID SessionID `json:"sessionId,omitempty"`

	// Text of the user, to which the memory should be relevant.
	Prompt string `json:"prompt,omitempty"`

	// Budget of the compilation, in tokens; absent means the configured one.
	TokenBudget int64 `json:"tokenBudget,omitempty"`

	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// CompileMemoryResult: Result of `memory/compile`.
type CompileMemoryResult struct {
	// The text to inject; empty if no source had any.
	FinalContent string `json:"finalContent"`

	// Size of the text, in tokens.
	Tokens int64 `json:"tokens"`

	// True if a model rewrote fragments into one text.
	Synthesized bool `json:"synthesized"`

	// Every fragment that was considered.
	Fragments []CompiledFragment `json:"fragments"`
}

// CompiledFragment: What became of one fragment.
type CompiledFragment struct {
	// The source of the fragment.
	PluginName string `json:"pluginName"`

	// The text as the source supplied it.
	Content string `json:"content"`

	// Size used for the budget, in tokens.
	Tokens int64 `json:"tokens"`

	// 0 to 100.
	Priority float64 `json:"priority"`

	// False if it did not fit.
	Included bool `json:"included"`
}

// ListEngineParams: Params of `engine/list`: empty.
type ListEngineParams struct{}

// ListEngineResult: Result of `engine/list`.
type ListEngineResult struct {
	// Every engine that is installed or configured.
	Engines []EngineListing `json:"engines"`
}

// EngineListing: An engine that the server knows, usable or not.
type EngineListing struct {
	// Id by which hosts and configuration select the engine.
	ID string `json:"id"`

	// Name for people.
	Name string `json:"name"`

	// Version of the engine.
	Version string `json:"version"`

	// True if the engine compacts, so that the host must not.
	OwnsCompaction bool `json:"ownsCompaction"`

	// Whether the host waits for `context/maintain` before it continues.
	TurnMaintenanceMode MaintenanceMode `json:"turnMaintenanceMode"`

	// Methods that the engine implements itself, such as `afterTurn`; the server answers the others.
	Implements []string `json:"implements"`

	// Host capabilities without which the engine refuses to start.
	HostRequirements []string `json:"hostRequirements,omitzero"`

	// Present if this engine replaces the selected one.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`

	// True for the engine that serves this connection.
	Active bool `json:"active"`

	// True if the engine can be selected now.
	Available bool `json:"available"`

	// Why it is not available, and what to fix.
	Reason string `json:"reason,omitempty"`
}

// DoctorEngineParams: Params of `engine/doctor`.
type DoctorEngineParams struct {
	// Token under which the server reports progress.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// DoctorEngineResult: Result of `engine/doctor`.
type DoctorEngineResult struct {
	// True if every check is ok.
	Ok bool `json:"ok"`

	// All checks, in a stable order.
	Checks []DoctorCheck `json:"checks"`

	// Present if a shadow engine is configured.
	Shadow *ShadowReport `json:"shadow,omitempty"`
}

// DoctorCheck: One diagnostic check.
type DoctorCheck struct {
	// Short stable name, such as `store`.
	Name string `json:"name"`

	// True if nothing needs to be done.
	Ok bool `json:"ok"`

	// The finding.
	Message string `json:"message"`

	// How to fix it.
	Fix string `json:"fix,omitempty"`
}

// ShadowReport: Two engines compared on the same requests.
type ShadowReport struct {
	// The engine whose answers were sent.
	Primary ShadowSide `json:"primary"`

	// The engine whose answers were not.
	Shadow ShadowSide `json:"shadow"`

	// Requests that both engines answered.
	Compared int64 `json:"compared"`

	// Share of the bytes the primary sent that the shadow would have sent too, verbatim.
	Coverage *float64 `json:"coverage,omitempty"`

	// Requests still queued for the shadow.
	Waiting int64 `json:"waiting"`

	// Requests the shadow never received, because its queue was full or it was suspended.
	Dropped int64 `json:"dropped"`

	// Requests not compared, because the session changed in the meantime.
	Outdated int64 `json:"outdated"`

	// Why its last answer failed, if it did.
	Problem string `json:"problem,omitempty"`
}

// ShadowSide: Statistics of one of the two engines compared.
type ShadowSide struct {
	// Id of the engine; for the primary, of the engine that serves by default.
	Engine string `json:"engine"`

	// Answers to `context/assemble` that were compared.
	Answers int64 `json:"answers"`

	// Requests it failed to answer; counted for the shadow only, since the host sees the primary's.
	Failures int64 `json:"failures"`

	// Answers that a provider would refuse.
	Invalid int64 `json:"invalid"`

	// Mean tokens per answer.
	MeanTokens int64 `json:"meanTokens"`

	// Share of the previous answer, in bytes, that the session's next answer begins with: what caches hit.
	PrefixKept *float64 `json:"prefixKept,omitempty"`

	// Median latency of the newest answers, in milliseconds.
	P50MS float64 `json:"p50Ms"`

	// 95th percentile of their latency, in milliseconds.
	P95MS float64 `json:"p95Ms"`
}

// ConfigureSessionParams: Params of `session/configure`; at least one of `sessionId` and `agentId` is
// required. At least one of SessionID, AgentID is present.
type ConfigureSessionParams struct {
	// The session to configure.
	SessionID SessionID `json:"sessionId,omitempty"`

	// Without `sessionId`, the agent to configure; with it, the owner of the session.
	AgentID AgentID `json:"agentId,omitempty"`

	// Engine to use from the next call on; absent keeps the current one.
	Engine EngineID `json:"engine,omitempty"`

	// Settings of the engine; they replace the earlier ones. Absent keeps those.
	Config json.RawMessage `json:"config,omitempty"`
}

// ConfigureSessionResult: Result of `session/configure`: the settings now in force.
type ConfigureSessionResult struct {
	// Id of the engine.
	Engine EngineID `json:"engine"`

	// The settings of the session or agent; `{}` if none.
	Config json.RawMessage `json:"config"`
}

// PinSessionParams: Params of `session/pin`; exactly one of `messageId` and `text`. Exactly one of
// MessageID, Text is present.
type PinSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// A stored message to keep through compaction.
	MessageID MessageID `json:"messageId,omitempty"`

	// A text to keep in the context.
	Text string `json:"text,omitempty"`

	// Why, for people.
	Note string `json:"note,omitempty"`
}

// PinSessionResult: Result of `session/pin`.
type PinSessionResult struct {
	// Id for `session/unpin`.
	PinID string `json:"pinId"`
}

// UnpinSessionParams: Params of `session/unpin`.
type UnpinSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The pin to remove.
	PinID string `json:"pinId"`
}

// UnpinSessionResult: Result of `session/unpin`.
type UnpinSessionResult struct {
	// False if there is no such pin.
	Unpinned bool `json:"unpinned"`
}

// PinsSessionParams: Params of `session/pins`.
type PinsSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// PinsSessionResult: Result of `session/pins`.
type PinsSessionResult struct {
	// Every pin of the session, oldest first.
	Pins []Pin `json:"pins"`
}

// Pin: Something that must survive compaction.
type Pin struct {
	// Id for `session/unpin`.
	PinID string `json:"pinId"`

	// The message, if a message is pinned.
	MessageID MessageID `json:"messageId,omitempty"`

	// The text, if a text is pinned.
	Text string `json:"text,omitempty"`

	// Why, for people.
	Note string `json:"note,omitempty"`

	// When it was pinned.
	CreatedAt time.Time `json:"createdAt"`
}

// TruncateSessionParams: Params of `session/truncate`.
type TruncateSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// The last message to keep.
	AfterMessageID MessageID `json:"afterMessageId"`
}

// TruncateSessionResult: Result of `session/truncate`.
type TruncateSessionResult struct {
	// How many messages were removed.
	RemovedMessages int64 `json:"removedMessages"`
}

// ForkSessionParams: Params of `session/fork`.
type ForkSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Id of the copy; must not exist yet.
	NewSessionID SessionID `json:"newSessionId"`

	// The last message to copy; defaults to all of them.
	AtMessageID MessageID `json:"atMessageId,omitempty"`
}

// ForkSessionResult: Result of `session/fork`.
type ForkSessionResult struct {
	// Id of the copy.
	SessionID SessionID `json:"sessionId"`

	// How many messages it has.
	MessageCount int64 `json:"messageCount"`
}

// SummariesSessionParams: Params of `session/summaries`.
type SummariesSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// SummariesSessionResult: Result of `session/summaries`.
type SummariesSessionResult struct {
	// Every summary in force, in the order of what it covers, deeper ones first.
	Summaries []SummaryNode `json:"summaries"`

	// The newest compactions, oldest first, as in `details` of `context/compact`.
	Receipts []json.RawMessage `json:"receipts,omitzero"`
}

// SummaryNode: A summary that covers a range of messages.
type SummaryNode struct {
	// Id of the summary; the recall tools accept it.
	NodeID string `json:"nodeId"`

	// 0 for a summary of messages, one more than its deepest source for a condensed one.
	Depth int64 `json:"depth"`

	// The summary.
	Text string `json:"text"`

	// Its size, in tokens.
	Tokens int64 `json:"tokens"`

	// How it was written, such as `model` or `deterministic`.
	Quality string `json:"quality"`

	// When it was written.
	CreatedAt time.Time `json:"createdAt"`

	// The first message that it covers.
	FirstMessageID MessageID `json:"firstMessageId"`

	// The last message that it covers.
	LastMessageID MessageID `json:"lastMessageId"`

	// How many messages it covers.
	MessageCount int64 `json:"messageCount"`

	// Node ids that were condensed into it; empty for a summary of messages.
	Sources []string `json:"sources"`
}

// ListSessionParams: Params of `session/list`.
type ListSessionParams struct {
	// Maximum entries on one page; defaults to 100.
	Limit int64 `json:"limit,omitempty"`

	// Where to continue, from the previous page.
	Cursor string `json:"cursor,omitempty"`

	// Only sessions of this agent, and those that no agent owns yet.
	AgentID AgentID `json:"agentId,omitempty"`
}

// ListSessionResult: Result of `session/list`.
type ListSessionResult struct {
	// One page of sessions, latest change first.
	Sessions []SessionEntry `json:"sessions"`

	// Requests the next page; absent on the last.
	NextCursor string `json:"nextCursor,omitempty"`
}

// SessionEntry: The key facts of one session.
type SessionEntry struct {
	// Id of the session.
	SessionID SessionID `json:"sessionId"`

	// Its alias.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Id of the engine that serves it.
	Engine EngineID `json:"engine"`

	// Dialect of its messages.
	MessageFormat MessageFormat `json:"messageFormat"`

	// How many messages are stored.
	MessageCount int64 `json:"messageCount"`

	// When the first message was stored.
	CreatedAt time.Time `json:"createdAt"`

	// When it last changed.
	UpdatedAt time.Time `json:"updatedAt"`
}

// GetSessionParams: Params of `session/get`.
type GetSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// GetSessionResult: Result of `session/get`.
type GetSessionResult struct {
	// Id of the session.
	SessionID SessionID `json:"sessionId"`

	// Its alias.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Id of the engine that serves it.
	Engine EngineID `json:"engine"`

	// Dialect of its messages.
	MessageFormat MessageFormat `json:"messageFormat"`

	// How many messages are stored.
	MessageCount int64 `json:"messageCount"`

	// When the first message was stored.
	CreatedAt time.Time `json:"createdAt"`

	// When it last changed.
	UpdatedAt time.Time `json:"updatedAt"`

	// Owner of the session.
	AgentID AgentID `json:"agentId,omitempty"`

	// How many turns it has.
	TurnCount int64 `json:"turnCount"`

	// Present until a background import is complete; `messageCount` shows its progress.
	Importing *SessionImport `json:"importing,omitempty"`
}

// SessionImport: An unfinished import.
type SessionImport struct {
	// `interrupted` if a process ended during it: the same `context/bootstrap` resumes it.
	State ImportState `json:"state"`

	// Number of messages the session will have at the end.
	Total int64 `json:"total"`
}

// ExportSessionParams: Params of `session/export`.
type ExportSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Where to continue, from the previous page.
	Cursor string `json:"cursor,omitempty"`
}

// ExportSessionResult: Result of `session/export`.
type ExportSessionResult struct {
	// Id of the session.
	SessionID SessionID `json:"sessionId"`

	// Dialect of the messages.
	MessageFormat MessageFormat `json:"messageFormat"`

	// One page of messages, oldest first.
	Messages []ExportedMessage `json:"messages"`

	// Requests the next page; absent on the last.
	NextCursor string `json:"nextCursor,omitempty"`
}

// ExportedMessage: A stored message with its metadata.
type ExportedMessage struct {
	// Id of the message.
	MessageID MessageID `json:"messageId"`

	// The turn that it belongs to.
	TurnID TurnID `json:"turnId"`

	// The host's timestamp, otherwise the time of receipt.
	Timestamp time.Time `json:"timestamp"`

	// The message, byte for byte.
	Message Message `json:"message"`

	// Fenced parts of its text that this server wrote, such as memory that the host stored with the
	// message. Each is quoted exactly. No other server can verify them, so an import leaves them out.
	Issued []string `json:"issued,omitzero"`
}

// DeleteSessionParams: Params of `session/delete`.
type DeleteSessionParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// DeleteSessionResult: Result of `session/delete`.
type DeleteSessionResult struct {
	// False if there was no such session.
	Deleted bool `json:"deleted"`
}

// CompleteRuntimeParams: Params of `runtime/complete`.
type CompleteRuntimeParams struct {
	// What the text is for; a host may choose another model for each.
	Purpose CompletionPurpose `json:"purpose"`

	// The conversation to complete.
	Messages []PromptMessage `json:"messages"`

	// Instructions that precede the conversation.
	SystemPrompt string `json:"systemPrompt,omitempty"`

	// Largest answer, in tokens.
	MaxTokens int64 `json:"maxTokens"`

	// Model that the configuration requests; the host decides.
	Model string `json:"model,omitempty"`

	// The session for which the completion is requested.
	SessionID SessionID `json:"sessionId,omitempty"`
}

// PromptMessage: A message of a completion, in no dialect.
type PromptMessage struct {
	// Who speaks.
	Role PromptRole `json:"role"`

	// The text.
	Content string `json:"content"`
}

// CompleteRuntimeResult: Result of `runtime/complete`.
type CompleteRuntimeResult struct {
	// What the model wrote.
	Text string `json:"text"`

	// The model that wrote it.
	Model string `json:"model,omitempty"`

	// Its token usage.
	Usage *CompletionUsage `json:"usage,omitempty"`
}

// CompletionUsage: Token usage of a completion.
type CompletionUsage struct {
	// Tokens of the input.
	InputTokens int64 `json:"inputTokens"`

	// Tokens of the output.
	OutputTokens int64 `json:"outputTokens"`
}

// CompactRuntimeParams: Params of `runtime/compact`: those of `context/compact`, passed on.
type CompactRuntimeParams struct {
	// The session: a key that the host chooses.
	SessionID SessionID `json:"sessionId"`

	// The agent's alias for the session; it refers to the session it was last used with.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Owner of the session: the first agent that uses it. To other agents the session does not exist.
	AgentID AgentID `json:"agentId,omitempty"`

	// Token under which the server reports progress by `$/progress`.
	WorkDoneToken any `json:"workDoneToken,omitempty"`

	// Maximum tokens of the context afterwards.
	TokenBudget int64 `json:"tokenBudget,omitempty"`

	// Compact even if the context fits.
	Force *bool `json:"force,omitempty"`

	// Why it is forced, such as `overflow` or `manual`.
	ForceReason string `json:"forceReason,omitempty"`

	// The host's own count, if it has one.
	CurrentTokenCount *int64 `json:"currentTokenCount,omitempty"`

	// Compact down to the budget, or to the engine's own threshold.
	CompactionTarget CompactionTarget `json:"compactionTarget,omitempty"`

	// What the summary should focus on.
	CustomInstructions string `json:"customInstructions,omitempty"`
}

// CompactRuntimeResult: Result of `runtime/compact`: passed back as that of `context/compact`.
type CompactRuntimeResult struct {
	// False if something failed; declining is not a failure.
	Ok bool `json:"ok"`

	// True if the context has changed.
	Compacted bool `json:"compacted"`

	// Why nothing was compacted.
	Reason string `json:"reason,omitempty"`

	// What was done.
	Result *CompactionResult `json:"result,omitempty"`

	// Present if the selected engine did not serve this request, with the reason.
	FallbackFor *FallbackFor `json:"fallbackFor,omitempty"`
}

// RewriteTranscriptRuntimeParams: Params of `runtime/rewriteTranscript`.
type RewriteTranscriptRuntimeParams struct {
	// The session whose transcript to rewrite.
	SessionID SessionID `json:"sessionId"`

	// Alias of the session.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// The replacements; other messages stay.
	Replacements []TranscriptReplacement `json:"replacements"`
}

// TranscriptReplacement: One message of the host's transcript to replace.
type TranscriptReplacement struct {
	// Id of the message.
	MessageID MessageID `json:"messageId"`

	// What to put in its place.
	Message Message `json:"message"`
}

// RewriteTranscriptRuntimeResult: Result of `runtime/rewriteTranscript`.
type RewriteTranscriptRuntimeResult struct {
	// True if the transcript has changed.
	Changed bool `json:"changed"`

	// Number of bytes by which it shrank.
	BytesFreed int64 `json:"bytesFreed"`

	// How many messages were replaced.
	RewrittenEntries int64 `json:"rewrittenEntries"`

	// Why nothing, or not everything, was replaced.
	Reason string `json:"reason,omitempty"`
}

// GetContextMemoryParams: Params of `memory/getContext`, a request to the host.
type GetContextMemoryParams struct {
	// Name under which the source was registered.
	Name string `json:"name"`

	// Agent for whose prompt this is.
	AgentID AgentID `json:"agentId"`

	// Why the source is asked.
	InjectionPoint InjectionPoint `json:"injectionPoint"`

	// The session, if there is one.
	SessionID SessionID `json:"sessionId,omitempty"`

	// Alias of the session.
	SessionKey SessionKey `json:"sessionKey,omitempty"`

	// Text of the user, to which the memory should be relevant.
	Prompt string `json:"prompt,omitempty"`
}

// GetContextMemoryResult: Result of `memory/getContext`.
type GetContextMemoryResult struct {
	// The source's fragments, best first; may be empty.
	Fragments []MemoryFragment `json:"fragments"`
}

// MemoryFragment: A piece of text that a memory source wants the model to see.
type MemoryFragment struct {
	// Id of the piece within its source; defaults to a hash of the content.
	ID string `json:"id,omitempty"`

	// The text.
	Content string `json:"content"`

	// Size in tokens; if absent or not positive, the server estimates it.
	Tokens *float64 `json:"tokens,omitempty"`

	// 0 to 100; the lowest is cut first. Absent means 50.
	Priority *float64 `json:"priority,omitempty"`

	// Heading for people.
	Label string `json:"label,omitempty"`

	// False keeps the text verbatim and away from any model; absent means true.
	Synthesize *bool `json:"synthesize,omitempty"`
}

// ContextInjectedMemoryParams: Params of `memory/contextInjected`: the outcome of a compilation.
type ContextInjectedMemoryParams struct {
	// Agent for whose prompt this was.
	AgentID AgentID `json:"agentId"`

	// Which sources were asked.
	InjectionPoint InjectionPoint `json:"injectionPoint"`

	// Every fragment that was considered.
	Fragments []CompiledFragment `json:"fragments"`

	// True if a model rewrote fragments into one text.
	Synthesized bool `json:"synthesized"`

	// The text that the answer carries.
	FinalContent string `json:"finalContent"`

	// When it was compiled.
	Timestamp time.Time `json:"timestamp"`

	// The session, if there is one.
	SessionID SessionID `json:"sessionId,omitempty"`
}

// ChangedSessionParams: Params of `session/changed`.
type ChangedSessionParams struct {
	// The session that changed.
	SessionID SessionID `json:"sessionId"`

	// What happened; `created`, `appended`, `changed` only if the host declares `session/changed`.
	Reason SessionChange `json:"reason"`
}

// ListChangedToolsParams: Params of `tools/listChanged`.
type ListChangedToolsParams struct {
	// The session whose tools changed; absent means every session.
	SessionID SessionID `json:"sessionId,omitempty"`
}

// WorkDoneProgressBegin: Progress value: work has begun.
type WorkDoneProgressBegin struct {
	// Selects the variant.
	Kind string `json:"kind"`

	// Title of the work, such as `Compacting`.
	Title string `json:"title"`

	// Whether cancelling the request stops the work.
	Cancellable *bool `json:"cancellable,omitempty"`

	// Detail that may change as the work goes on.
	Message string `json:"message,omitempty"`

	// Percentage done, 0 to 100; absent if unknown.
	Percentage *int64 `json:"percentage,omitempty"`
}

// WorkDoneProgressReport: Progress value: work goes on.
type WorkDoneProgressReport struct {
	// Selects the variant.
	Kind string `json:"kind"`

	// Whether cancelling the request stops the work.
	Cancellable *bool `json:"cancellable,omitempty"`

	// Detail of the current step.
	Message string `json:"message,omitempty"`

	// Percentage done, 0 to 100, never falling.
	Percentage *int64 `json:"percentage,omitempty"`
}

// WorkDoneProgressEnd: Progress value: work has ended.
type WorkDoneProgressEnd struct {
	// Selects the variant.
	Kind string `json:"kind"`

	// How it ended.
	Message string `json:"message,omitempty"`
}

// FrameErrorData: Data of ParseError and InvalidRequest.
type FrameErrorData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The bound that was exceeded, in bytes.
	Limit *int64 `json:"limit,omitempty"`
}

// ErrorData: What every error carries as `data`.
type ErrorData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`
}

// InvalidParamsData: Data of InvalidParams.
type InvalidParamsData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// JSON Pointer into the params; empty for the params as a whole.
	Path string `json:"path,omitempty"`

	// Values that would be accepted, such as protocol versions.
	Supported []string `json:"supported,omitzero"`

	// Dialect of the session, if the connection has another one.
	MessageFormat MessageFormat `json:"messageFormat,omitempty"`
}

// EngineUnavailableData: Data of EngineUnavailable.
type EngineUnavailableData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The engine that was selected.
	EngineID EngineID `json:"engineId,omitempty"`

	// Host capabilities that the engine requires and the host did not declare.
	MissingCapabilities []string `json:"missingCapabilities,omitzero"`
}

// ContextOverflowData: Data of ContextOverflow.
type ContextOverflowData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The smallest budget with which the same request succeeds, in tokens.
	Required int64 `json:"required"`

	// The budget that was requested, in tokens.
	TokenBudget int64 `json:"tokenBudget"`
}

// SessionNotFoundData: Data of SessionNotFound.
type SessionNotFoundData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The session that was requested.
	SessionID SessionID `json:"sessionId,omitempty"`
}

// HostCapabilityMissingData: Data of HostCapabilityMissing.
type HostCapabilityMissingData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// What the host must declare in `hostCapabilities`.
	Capability string `json:"capability"`
}

// EngineFailedData: Data of EngineFailed.
type EngineFailedData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The engine that failed.
	EngineID EngineID `json:"engineId"`

	// The method that failed.
	Method string `json:"method"`

	// Its error message, without traceback and local paths.
	Message string `json:"message"`
}

// BusyData: Data of Busy.
type BusyData struct {
	// True if the same request may succeed later unchanged.
	Retryable bool `json:"retryable"`

	// What the caller can do about it, in one sentence.
	Hint string `json:"hint"`

	// The bound that was reached, in bytes.
	Limit *int64 `json:"limit,omitempty"`
}

// ContextBootstrap sends `context/bootstrap`. Imports the new messages of the host's transcript.
func (c *Client) ContextBootstrap(ctx context.Context, params *BootstrapContextParams) (*BootstrapContextResult, error) {
	result := new(BootstrapContextResult)
	err := c.Request(ctx, "context/bootstrap", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextIngest sends `context/ingest`. Stores one message.
func (c *Client) ContextIngest(ctx context.Context, params *IngestContextParams) (*IngestContextResult, error) {
	result := new(IngestContextResult)
	err := c.Request(ctx, "context/ingest", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextIngestBatch sends `context/ingestBatch`. Stores several messages, all or none.
func (c *Client) ContextIngestBatch(ctx context.Context, params *IngestBatchContextParams) (*IngestBatchContextResult, error) {
	result := new(IngestBatchContextResult)
	err := c.Request(ctx, "context/ingestBatch", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextCompact sends `context/compact`. Makes the context smaller.
func (c *Client) ContextCompact(ctx context.Context, params *CompactContextParams) (*CompactContextResult, error) {
	result := new(CompactContextResult)
	err := c.Request(ctx, "context/compact", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextAfterTurn sends `context/afterTurn`. Reports the end of a turn and its messages.
func (c *Client) ContextAfterTurn(ctx context.Context, params *AfterTurnContextParams) (*AfterTurnContextResult, error) {
	result := new(AfterTurnContextResult)
	err := c.Request(ctx, "context/afterTurn", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextCommitTurn sends `context/commitTurn`. Stores a turn exactly once.
func (c *Client) ContextCommitTurn(ctx context.Context, params *CommitTurnContextParams) (*CommitTurnContextResult, error) {
	result := new(CommitTurnContextResult)
	err := c.Request(ctx, "context/commitTurn", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextMaintain sends `context/maintain`. Lets the engine tidy up between turns.
func (c *Client) ContextMaintain(ctx context.Context, params *MaintainContextParams) (*MaintainContextResult, error) {
	result := new(MaintainContextResult)
	err := c.Request(ctx, "context/maintain", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextPreflight sends `context/preflight`. Checks whether the context fits before the model is
// called.
func (c *Client) ContextPreflight(ctx context.Context, params *PreflightContextParams) (*PreflightContextResult, error) {
	result := new(PreflightContextResult)
	err := c.Request(ctx, "context/preflight", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextExplain sends `context/explain`. Explains what the model saw, and why.
func (c *Client) ContextExplain(ctx context.Context, params *ExplainContextParams) (*ExplainContextResult, error) {
	result := new(ExplainContextResult)
	err := c.Request(ctx, "context/explain", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ContextDispose sends `context/dispose`. Flushes and releases the engine.
func (c *Client) ContextDispose(ctx context.Context, params *DisposeContextParams) (*DisposeContextResult, error) {
	result := new(DisposeContextResult)
	err := c.Request(ctx, "context/dispose", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SubagentPrepareSpawn sends `subagent/prepareSpawn`. Prepares the context of a child session.
func (c *Client) SubagentPrepareSpawn(ctx context.Context, params *PrepareSpawnSubagentParams) (*PrepareSpawnSubagentResult, error) {
	result := new(PrepareSpawnSubagentResult)
	err := c.Request(ctx, "subagent/prepareSpawn", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SubagentRollbackSpawn sends `subagent/rollbackSpawn`. Rolls back a preparation.
func (c *Client) SubagentRollbackSpawn(ctx context.Context, params *RollbackSpawnSubagentParams) (*RollbackSpawnSubagentResult, error) {
	result := new(RollbackSpawnSubagentResult)
	err := c.Request(ctx, "subagent/rollbackSpawn", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SubagentEnded sends `subagent/ended`. Reports the end of a child session.
func (c *Client) SubagentEnded(ctx context.Context, params *EndedSubagentParams) (*EndedSubagentResult, error) {
	result := new(EndedSubagentResult)
	err := c.Request(ctx, "subagent/ended", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ToolsList sends `tools/list`. Describes the tools that the engine offers to the model.
func (c *Client) ToolsList(ctx context.Context, params *ListToolsParams) (*ListToolsResult, error) {
	result := new(ListToolsResult)
	err := c.Request(ctx, "tools/list", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// ToolsCall sends `tools/call`. Runs one of the tools.
func (c *Client) ToolsCall(ctx context.Context, params *CallToolsParams) (*CallToolsResult, error) {
	result := new(CallToolsResult)
	err := c.Request(ctx, "tools/call", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// MemoryRegister sends `memory/register`. Offers the host as a memory source.
func (c *Client) MemoryRegister(ctx context.Context, params *RegisterMemoryParams) (*RegisterMemoryResult, error) {
	result := new(RegisterMemoryResult)
	err := c.Request(ctx, "memory/register", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// MemoryUnregister sends `memory/unregister`. Withdraws a memory source.
func (c *Client) MemoryUnregister(ctx context.Context, params *UnregisterMemoryParams) (*UnregisterMemoryResult, error) {
	result := new(UnregisterMemoryResult)
	err := c.Request(ctx, "memory/unregister", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// MemoryCompile sends `memory/compile`. Asks all memory sources and composes one text.
func (c *Client) MemoryCompile(ctx context.Context, params *CompileMemoryParams) (*CompileMemoryResult, error) {
	result := new(CompileMemoryResult)
	err := c.Request(ctx, "memory/compile", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// EngineList sends `engine/list`. Lists the engines that the server knows.
func (c *Client) EngineList(ctx context.Context, params *ListEngineParams) (*ListEngineResult, error) {
	result := new(ListEngineResult)
	err := c.Request(ctx, "engine/list", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// EngineDoctor sends `engine/doctor`. Finds problems and says how to fix them.
func (c *Client) EngineDoctor(ctx context.Context, params *DoctorEngineParams) (*DoctorEngineResult, error) {
	result := new(DoctorEngineResult)
	err := c.Request(ctx, "engine/doctor", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionConfigure sends `session/configure`. Selects engine and settings for a session or an agent.
func (c *Client) SessionConfigure(ctx context.Context, params *ConfigureSessionParams) (*ConfigureSessionResult, error) {
	result := new(ConfigureSessionResult)
	err := c.Request(ctx, "session/configure", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionPin sends `session/pin`. Keeps a message or a text through every compaction.
func (c *Client) SessionPin(ctx context.Context, params *PinSessionParams) (*PinSessionResult, error) {
	result := new(PinSessionResult)
	err := c.Request(ctx, "session/pin", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionUnpin sends `session/unpin`. Removes a pin.
func (c *Client) SessionUnpin(ctx context.Context, params *UnpinSessionParams) (*UnpinSessionResult, error) {
	result := new(UnpinSessionResult)
	err := c.Request(ctx, "session/unpin", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionPins sends `session/pins`. Lists the pins.
func (c *Client) SessionPins(ctx context.Context, params *PinsSessionParams) (*PinsSessionResult, error) {
	result := new(PinsSessionResult)
	err := c.Request(ctx, "session/pins", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionTruncate sends `session/truncate`. Removes everything after a message.
func (c *Client) SessionTruncate(ctx context.Context, params *TruncateSessionParams) (*TruncateSessionResult, error) {
	result := new(TruncateSessionResult)
	err := c.Request(ctx, "session/truncate", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionFork sends `session/fork`. Copies a session under a new id.
func (c *Client) SessionFork(ctx context.Context, params *ForkSessionParams) (*ForkSessionResult, error) {
	result := new(ForkSessionResult)
	err := c.Request(ctx, "session/fork", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionSummaries sends `session/summaries`. Lists the summaries in force.
func (c *Client) SessionSummaries(ctx context.Context, params *SummariesSessionParams) (*SummariesSessionResult, error) {
	result := new(SummariesSessionResult)
	err := c.Request(ctx, "session/summaries", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionList sends `session/list`. Lists the sessions of the namespace, page by page.
func (c *Client) SessionList(ctx context.Context, params *ListSessionParams) (*ListSessionResult, error) {
	result := new(ListSessionResult)
	err := c.Request(ctx, "session/list", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionGet sends `session/get`. Returns the key facts of one session.
func (c *Client) SessionGet(ctx context.Context, params *GetSessionParams) (*GetSessionResult, error) {
	result := new(GetSessionResult)
	err := c.Request(ctx, "session/get", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionExport sends `session/export`. Returns the stored messages, page by page.
func (c *Client) SessionExport(ctx context.Context, params *ExportSessionParams) (*ExportSessionResult, error) {
	result := new(ExportSessionResult)
	err := c.Request(ctx, "session/export", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// SessionDelete sends `session/delete`. Erases a session.
func (c *Client) SessionDelete(ctx context.Context, params *DeleteSessionParams) (*DeleteSessionResult, error) {
	result := new(DeleteSessionResult)
	err := c.Request(ctx, "session/delete", params, result)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// NewResult returns a pointer to decode the result of a request into, or nil for none.
func NewResult(method string) any {
	switch method {
	case "initialize":
		return new(InitializeResult)
	case "context/bootstrap":
		return new(BootstrapContextResult)
	case "context/ingest":
		return new(IngestContextResult)
	case "context/ingestBatch":
		return new(IngestBatchContextResult)
	case "context/assemble":
		return new(AssembleContextResult)
	case "context/compact":
		return new(CompactContextResult)
	case "context/afterTurn":
		return new(AfterTurnContextResult)
	case "context/commitTurn":
		return new(CommitTurnContextResult)
	case "context/maintain":
		return new(MaintainContextResult)
	case "context/preflight":
		return new(PreflightContextResult)
	case "context/explain":
		return new(ExplainContextResult)
	case "context/dispose":
		return new(DisposeContextResult)
	case "subagent/prepareSpawn":
		return new(PrepareSpawnSubagentResult)
	case "subagent/rollbackSpawn":
		return new(RollbackSpawnSubagentResult)
	case "subagent/ended":
		return new(EndedSubagentResult)
	case "tools/list":
		return new(ListToolsResult)
	case "tools/call":
		return new(CallToolsResult)
	case "memory/register":
		return new(RegisterMemoryResult)
	case "memory/unregister":
		return new(UnregisterMemoryResult)
	case "memory/compile":
		return new(CompileMemoryResult)
	case "engine/list":
		return new(ListEngineResult)
	case "engine/doctor":
		return new(DoctorEngineResult)
	case "session/configure":
		return new(ConfigureSessionResult)
	case "session/pin":
		return new(PinSessionResult)
	case "session/unpin":
		return new(UnpinSessionResult)
	case "session/pins":
		return new(PinsSessionResult)
	case "session/truncate":
		return new(TruncateSessionResult)
	case "session/fork":
		return new(ForkSessionResult)
	case "session/summaries":
		return new(SummariesSessionResult)
	case "session/list":
		return new(ListSessionResult)
	case "session/get":
		return new(GetSessionResult)
	case "session/export":
		return new(ExportSessionResult)
	case "session/delete":
		return new(DeleteSessionResult)
	}
	return nil
}

// CodeParseError: The body is not JSON text in UTF-8, is empty, or has another charset. Its data is
// FrameErrorData.
const CodeParseError = -32700

// CodeInvalidRequest: The message is not a single JSON-RPC request, its length is unusable, its id is
// taken, or it comes at the wrong time. Its data is FrameErrorData.
const CodeInvalidRequest = -32600

// CodeMethodNotFound: The server has no method of this name. Its data is ErrorData.
const CodeMethodNotFound = -32601

// CodeInvalidParams: The params are not an object, or a member is missing, of the wrong type, or not
// acceptable. Its data is InvalidParamsData.
const CodeInvalidParams = -32602

// CodeInternalError: The server has a defect. Its data is ErrorData.
const CodeInternalError = -32603

// CodeServerNotInitialized: A request came before initialize has succeeded. Its data is ErrorData.
const CodeServerNotInitialized = -32002

// CodeRequestCancelled: The request was cancelled and has had no effect. Its data is ErrorData.
const CodeRequestCancelled = -32800

// CodeEngineUnavailable: The selected engine cannot be found, is configured wrongly, or needs a
// capability of the host. Its data is EngineUnavailableData.
const CodeEngineUnavailable = 1001

// CodeContextOverflow: Not even the smallest valid context fits the token budget. Its data is
// ContextOverflowData.
const CodeContextOverflow = 1002

// CodeSessionNotFound: The session does not exist in this namespace, or belongs to another agent. Its
// data is SessionNotFoundData.
const CodeSessionNotFound = 1003

// CodeHostCapabilityMissing: The request needs a capability that the host does not declare. Its data
// is HostCapabilityMissingData.
const CodeHostCapabilityMissing = 1004

// CodeEngineFailed: The engine raised an error or took too long. Its data is EngineFailedData.
const CodeEngineFailed = 1005

// CodeStoreUnavailable: The store cannot be opened, read or written. Its data is ErrorData.
const CodeStoreUnavailable = 1006

// CodeBusy: The server's queue of waiting requests is full. Its data is BusyData.
const CodeBusy = 1007
