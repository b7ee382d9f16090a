// Generated from sidecar/protocol by `make schema`; do not edit.

/** A JSON object whose members the protocol does not define. */
export type JsonObject = { [member: string]: unknown };

/** Trace level of the server. */
export type TraceValue = "off" | "messages" | "verbose" | (string & {});

/** Capability that a host can declare; servers ignore unknown names. */
export type HostCapability = "runtime/complete" | "runtime/compact" | "runtime/rewriteTranscript" | "memory/getContext" | "session/changed" | "assembleDelta" | "ownsHistory" | (string & {});

/** Dialect of messages: chat completions, Responses items, Anthropic messages, pi AgentMessage. */
export type MessageFormat = "openai" | "openai-responses" | "anthropic" | "openclaw" | (string & {});

/** Id by which an engine is selected. */
export type EngineId = string;

/** Whether the host waits for `context/maintain` before it continues. */
export type MaintenanceMode = "foreground" | "background" | (string & {});

/** Chosen by the sender; unique among its requests in flight. */
export type RequestId = number | string;

/** 1 error, 2 warning, 3 info, 4 log, 5 debug. */
export type MessageType = 1 | 2 | 3 | 4 | 5 | (number & {});

/** Name of a session as the host spells it: a key, never a path; 1 to 1024 code points, no NUL. */
export type SessionId = string;

/** Alias of a session. */
export type SessionKey = string;

/** Name of an agent, which owns sessions. */
export type AgentId = string;

/**
 * One message in the dialect of the connection; has `role` or `type`. The server reads what it needs and
 * hands the whole object back byte for byte.
 */
export interface Message {
  readonly role?: unknown;
  readonly type?: unknown;
}

/** Id of a message within its session. */
export type MessageId = string;

/** Name of a turn within its session. */
export type TurnId = string;

/** Id of an assembled answer, unique in the store. */
export type ResultId = string;

/** Backend that keeps its own thread; the server refuses others. */
export type Projection = "codex";

/** Whose estimate the host should trust before it calls the model. */
export type PromptAuthority = "assembled" | "preassembly_may_overflow" | (string & {});

/** Where a part of the context comes from. */
export type ContentKind = "system" | "summary" | "activityLog" | "recent" | "memory" | "recall" | (string & {});

/** `per_turn` goes with every turn, `thread_bootstrap` begins a new thread. */
export type ProjectionMode = "per_turn" | "thread_bootstrap" | (string & {});

/** Compact to the budget, or to the engine's own threshold; other values are refused. */
export type CompactionTarget = "budget" | "threshold";

/** Outcome of committing a turn. */
export type CommitStatus = "committed" | "duplicate" | (string & {});

/** How the host should react before it calls the model. */
export type PreflightAction = "none" | "compact" | (string & {});

/** What became of a stored message in an answer. */
export type Decision = "sent" | "summarised" | "stubbed" | "dropped" | "pinned" | (string & {});

/** When a memory source is asked: once per session, or for every prompt. */
export type InjectionPoint = "session-start" | "per-message" | (string & {});

/**
 * `fork` starts the child from a snapshot of the parent, `isolated` starts it empty; the server refuses
 * others.
 */
export type SpawnMode = "fork" | "isolated";

/** Why a child session has ended; `deleted` erases its data, every other reason keeps it. */
export type EndReason = "deleted" | "completed" | "swept" | "released" | (string & {});

/** State of an unfinished import. */
export type ImportState = "running" | "interrupted" | (string & {});

/** What a completion is for; a host may choose another model for each. */
export type CompletionPurpose = "summary" | "condense" | "synthesis" | "query" | (string & {});

/** Who speaks in a completion. */
export type PromptRole = "user" | "assistant" | (string & {});

/** What happened to a session; `changed` is a change by another process. */
export type SessionChange = "configured" | "pinned" | "unpinned" | "truncated" | "compacted" | "maintained" | "deleted" | "created" | "appended" | "changed" | (string & {});

/** Params of `initialize`: those of the Language Server Protocol. */
export interface InitializeParams {
  /** Process id of the host, `null` for none; the server ends when a host that was alive dies. */
  processId?: number | null | undefined;
  /** The client program. */
  clientInfo?: PeerInfo | null | undefined;
  /** Language of the user, an IETF tag. */
  locale?: string | null | undefined;
  /** Folder of the workspace, `null` if none is open; superseded by `rootUri`. */
  rootPath?: string | null | undefined;
  /** Folder of the workspace, `null` if none is open. */
  rootUri?: string | null | undefined;
  /** Client capabilities of the Language Server Protocol. */
  capabilities?: JsonObject | null | undefined;
  /** Options of the client. */
  initializationOptions?: InitializationOptions | null | undefined;
  /** Initial trace level. */
  trace?: TraceValue | null | undefined;
  /** Folders of the workspace. */
  workspaceFolders?: unknown;
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Name and version of a program, as in the Language Server Protocol. */
export interface PeerInfo {
  /** Name of the program. */
  name: string;
  /** Its version. */
  version?: string | null | undefined;
}

/** The client's initialization options; this protocol uses only `contextEngine`. */
export interface InitializationOptions {
  /** What the host requests of the server. */
  contextEngine?: ContextEngineOptions | null | undefined;
}

/** What the host asks of the server, under `initializationOptions.contextEngine`. */
export interface ContextEngineOptions {
  /** Version that the host speaks; absent means the newest. */
  protocolVersion?: string | null | undefined;
  /** The agent runtime. */
  host?: HostInfo | null | undefined;
  /**
   * Requests that the host answers, `session/changed`, `assembleDelta` and `ownsHistory`; unknown names are
   * ignored.
   */
  hostCapabilities?: readonly HostCapability[] | null | undefined;
  /** Dialect of every message on this connection. Absent means `"openai"`. */
  messageFormat?: MessageFormat | null | undefined;
  /** Id of the engine to use; overrides the configured slot. */
  engine?: EngineId | null | undefined;
  /** Separates hosts that share a store; defaults to `host.id`, else `default`. */
  namespace?: string | null | undefined;
  /** Overrides in the shape of the configuration file. */
  config?: JsonObject | null | undefined;
}

/** The agent runtime behind the connection. */
export interface HostInfo {
  /** Short name of the runtime, such as `openclaw`; the default namespace. */
  id: string;
  /** Version of the runtime. */
  version?: string | null | undefined;
}

/** Result of `initialize`: settings are valid and the store is open. */
export interface InitializeResult {
  /** What the server offers. */
  capabilities: ServerCapabilities;
  /** The server program. */
  serverInfo: PeerInfo;
}

/** Server capabilities of the Language Server Protocol, including those for editors. */
export interface ServerCapabilities {
  /** Capabilities of this protocol. */
  experimental: ExperimentalCapabilities;
}

/** Capabilities outside the Language Server Protocol. */
export interface ExperimentalCapabilities {
  /** What the server offers to agent runtimes. */
  contextEngine: ContextEngineCapabilities;
}

/** What the server offers, under `capabilities.experimental.contextEngine`. */
export interface ContextEngineCapabilities {
  /** Version that both sides speak from now on. */
  protocolVersion: string;
  /** The engine that serves this connection. */
  engine: EngineInfo;
  /** Requests and notifications of this protocol that the server accepts. */
  methods: readonly string[];
  /** Names of the tools that `tools/list` describes. */
  tools: readonly string[];
  /** Dialects that the server supports. */
  messageFormats: readonly MessageFormat[];
  /** Limits of the connection. */
  limits: Limits;
}

/** Description of a context engine. */
export interface EngineInfo {
  /** Id by which hosts and configuration select the engine. */
  id: string;
  /** Name for people. */
  name: string;
  /** Version of the engine. */
  version: string;
  /** True if the engine compacts, so that the host must not. */
  ownsCompaction: boolean;
  /** Whether the host waits for `context/maintain` before it continues. */
  turnMaintenanceMode: MaintenanceMode;
  /** Methods that the engine implements itself, such as `afterTurn`; the server answers the others. */
  implements: readonly string[];
  /** Host capabilities without which the engine refuses to start. */
  hostRequirements?: readonly string[] | null | undefined;
  /** Present if this engine replaces the selected one. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** The engine that was selected but could not serve. */
export interface FallbackFor {
  /** Id of the engine that was selected. */
  id: string;
  /** Why it could not serve, and what to fix. */
  reason: string;
}

/** Limits of this connection. */
export interface Limits {
  /** Largest body of one message, in bytes. */
  maxMessageBytes: number;
  /** Maximum concurrent requests; further ones are parked. */
  maxInFlight: number;
  /** Bytes of parked requests beyond which a request is refused with Busy. */
  maxParkedBytes: number;
  /** How long the server waits for the host's answer, in milliseconds. */
  hostRequestTimeoutMs: number;
  /** Budget of requests that name none, in tokens. */
  defaultTokenBudget: number;
}

/** Params of `initialized`: empty. */
export type InitializedParams = Record<string, never>;

/** Params of `shutdown`: empty. */
export type ShutdownParams = Record<string, never>;

/** Params of `exit`: empty. */
export type ExitParams = Record<string, never>;

/** Params of `$/cancelRequest`. */
export interface CancelRequestParams {
  /** Id of the request to cancel. */
  id: RequestId;
}

/** Params of `$/progress`. */
export interface ProgressParams {
  /** The token of the work. */
  token: number | string;
  /** A WorkDoneProgressBegin, WorkDoneProgressReport or WorkDoneProgressEnd. */
  value: unknown;
}

/** Params of `$/setTrace`. */
export interface SetTraceParams {
  /** Trace level from now on. */
  value: TraceValue;
}

/** Params of `window/logMessage`. */
export interface LogMessageWindowParams {
  /** 1 error, 2 warning, 3 info, 4 log, 5 debug. */
  type: MessageType;
  /** The line to log. */
  message: string;
}

/** Params of `window/workDoneProgress/create`. */
export interface CreateWindowWorkDoneProgressParams {
  /** Token under which the server will report progress. */
  token: number | string;
}

/** Params of `window/workDoneProgress/cancel`. */
export interface CancelWindowWorkDoneProgressParams {
  /** Token of the work to stop. */
  token: number | string;
}

/** Params of `context/bootstrap`. */
export interface BootstrapContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The host's whole transcript; takes precedence over `sessionFile`. */
  messages?: readonly Message[] | null | undefined;
  /** Locator of the host's transcript file. */
  sessionFile?: string | null | undefined;
  /** Name of the importer for the file; if absent, the server detects it. */
  sessionFileFormat?: string | null | undefined;
  /** Import in steps; meanwhile reading requests proceed and storing requests wait for the end. */
  background?: boolean | null | undefined;
}

/** Result of `context/bootstrap`. */
export interface BootstrapContextResult {
  /** True if new messages were stored. */
  bootstrapped: boolean;
  /** How many messages were stored. */
  importedMessages: number;
  /** Why nothing was stored. */
  reason?: string | null | undefined;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/ingest`. */
export interface IngestContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The message to store. */
  message: Message;
  /** The host's id of the message; takes precedence over an id inside the message. */
  messageId?: MessageId | null | undefined;
  /** The host's name of the turn. */
  turnId?: TurnId | null | undefined;
  /** When the message was created; defaults to its own timestamp, else to now. */
  timestamp?: string | null | undefined;
  /** True for a message that only keeps the agent awake. */
  isHeartbeat?: boolean | null | undefined;
}

/** Result of `context/ingest`. */
export interface IngestContextResult {
  /** False if nothing was stored. */
  ingested: boolean;
  /** Id under which the message is stored. */
  messageId: MessageId;
  /** The turn of the message; empty if nothing is stored, as with `legacy`. */
  turnId: string;
  /** The message as people should see it, if different. */
  displayMessage?: Message | null | undefined;
  /** Why nothing was stored, such as `duplicate` or `conflict`. */
  reason?: string | null | undefined;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/ingestBatch`. */
export interface IngestBatchContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The messages to store, all or none, in this order. */
  messages: readonly Message[];
  /** The host's ids, one for each message; `null` if it has none. */
  messageIds?: readonly (string | null)[] | null | undefined;
  /** True if the messages only keep the agent awake. */
  isHeartbeat?: boolean | null | undefined;
}

/** Result of `context/ingestBatch`. */
export interface IngestBatchContextResult {
  /** Number of messages stored; known ones do not count. */
  ingestedCount: number;
  /** Ids under which the messages are stored, one for each. */
  messageIds: readonly MessageId[];
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/assemble`. */
export interface AssembleContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Maximum tokens of the answer; defaults to `limits.defaultTokenBudget`. */
  tokenBudget?: number | null | undefined;
  /** The host's transcript; replaces the live tail of the session. */
  messages?: readonly Message[] | null | undefined;
  /** The user's text of this turn, if the host adds the message itself. */
  prompt?: string | null | undefined;
  /** Model that will read the answer. */
  model?: string | null | undefined;
  /** Names of the tools that the model may call. */
  availableTools?: readonly string[] | null | undefined;
  /** How memory should cite its sources; for engines, not for the server. */
  citationsMode?: string | null | undefined;
  /** Request `edits` against this earlier result; needs `assembleDelta`. */
  previousResultId?: ResultId | null | undefined;
  /** Also request a `contextProjection`. */
  projection?: Projection | null | undefined;
}

/**
 * Result of `context/assemble`; has either `messages` or `edits`. Exactly one of `messages`, `edits` must
 * be there.
 */
export interface AssembleContextResult {
  /** What the model should see, in this order. */
  messages?: readonly Message[] | null | undefined;
  /** Differences from the previous result, ascending; positions refer to the previous list. */
  edits?: readonly MessageEdit[] | null | undefined;
  /** Tokens of messages and additions together; a reserved prompt comes on top. */
  estimatedTokens: number;
  /** Rises when an earlier message is removed, summarised, replaced or moved. */
  contextEpoch: number;
  /** Where a cache breakpoint belongs. */
  stablePrefix: StablePrefix;
  /** Identifies this result for `previousResultId` and `context/explain`. */
  resultId: ResultId;
  /** Tokens and messages by kind of content. */
  composition: readonly CompositionPart[];
  /** Text to append to the host's system prompt. */
  systemPromptAddition?: string | null | undefined;
  /** Text to append to this turn's user message, and to store with it. */
  userMessageAppend?: string | null | undefined;
  /** Whose estimate the host should trust before it calls the model. */
  promptAuthority?: PromptAuthority | null | undefined;
  /** Present if `projection` requested it. */
  contextProjection?: ContextProjection | null | undefined;
  /** Present if another engine gave this answer, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** One change of an earlier list of messages. */
export interface MessageEdit {
  /** Index in the previous list where the change begins. */
  start: number;
  /** How many messages of the previous list go. */
  deleteCount: number;
  /** What comes in their place. */
  messages: readonly Message[];
}

/** The part of the list that the next result of the same epoch repeats. */
export interface StablePrefix {
  /** Messages in it: a cache breakpoint belongs after them. */
  messageCount: number;
  /** Tokens in it. */
  tokens: number;
}

/** The share of the answer that one kind of content takes. */
export interface CompositionPart {
  /** Where the content comes from. */
  kind: ContentKind;
  /** Its tokens; all parts sum to `estimatedTokens`. */
  tokens: number;
  /** Its messages; all parts sum to the length of the list. */
  messageCount: number;
}

/** The context for a backend that keeps its own thread. */
export interface ContextProjection {
  /** `per_turn` goes with every turn, `thread_bootstrap` begins a new thread. */
  mode: ProjectionMode;
  /** Identifies the thread: if the value differs, the backend must start a new one. */
  epoch: string;
  /** Hash of the projection's source. */
  fingerprint: string;
  /** What goes before the conversation. */
  developerInstructions: string;
  /** The user's text. */
  prompt: string;
}

/** Params of `context/compact`. */
export interface CompactContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Maximum tokens of the context afterwards. */
  tokenBudget?: number | null | undefined;
  /** Compact even if the context fits. */
  force?: boolean | null | undefined;
  /** Why it is forced, such as `overflow` or `manual`. */
  forceReason?: string | null | undefined;
  /** The host's own count, if it has one. */
  currentTokenCount?: number | null | undefined;
  /** Compact down to the budget, or to the engine's own threshold. */
  compactionTarget?: CompactionTarget | null | undefined;
  /** What the summary should focus on. */
  customInstructions?: string | null | undefined;
}

/** Result of `context/compact`. */
export interface CompactContextResult {
  /** False if something failed; declining is not a failure. */
  ok: boolean;
  /** True if the context has changed. */
  compacted: boolean;
  /** Why nothing was compacted. */
  reason?: string | null | undefined;
  /** What was done. */
  result?: CompactionResult | null | undefined;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** What a compaction did. */
export interface CompactionResult {
  /** The summary that now covers older messages. */
  summary?: string | null | undefined;
  /** The oldest message that is still sent in full. */
  firstKeptMessageId?: MessageId | null | undefined;
  /** Tokens of the context before. */
  tokensBefore: number;
  /** Tokens of the context now. */
  tokensAfter?: number | null | undefined;
  /** Further details from the engine. */
  details?: unknown;
}

/** Params of `context/afterTurn`. */
export interface AfterTurnContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The turn's new messages; the whole transcript if `prePromptMessageCount` is given. */
  messages?: readonly Message[] | null | undefined;
  /** How many of the messages precede the prompt. */
  prePromptMessageCount?: number | null | undefined;
  /** Maximum tokens of the next turn's context. */
  tokenBudget?: number | null | undefined;
  /** The provider's usage object, unchanged. */
  usage?: JsonObject | null | undefined;
  /** True if the turn only kept the agent awake. */
  isHeartbeat?: boolean | null | undefined;
  /** Summary that the host wrote when it compacted on its own. */
  autoCompactionSummary?: string | null | undefined;
}

/** Result of `context/afterTurn`: empty if all went well. */
export interface AfterTurnContextResult {
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/commitTurn`. */
export interface CommitTurnContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Names the turn; each key is committed only once. */
  advancementKey: string;
  /** The turn's messages. */
  messages: readonly Message[];
  /** True if the turn only kept the agent awake. */
  isHeartbeat?: boolean | null | undefined;
  /** The host's receipt for the prompt; never interpreted. */
  admission?: unknown;
  /** The host's receipt for the end of the turn; never interpreted. */
  terminal?: unknown;
}

/** Result of `context/commitTurn`. */
export interface CommitTurnContextResult {
  /** `duplicate` if the key was committed before. */
  status: CommitStatus;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/maintain`. */
export interface MaintainContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Maximum tokens of the context. */
  tokenBudget?: number | null | undefined;
}

/** Result of `context/maintain`. */
export interface MaintainContextResult {
  /** True if the host's transcript was rewritten. */
  changed: boolean;
  /** Number of bytes by which it shrank. */
  bytesFreed: number;
  /** How many of its messages were rewritten. */
  rewrittenEntries: number;
  /** Why nothing was done. */
  reason?: string | null | undefined;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/preflight`. */
export interface PreflightContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Maximum tokens of the context. */
  tokenBudget: number;
  /** The host's transcript; replaces the live tail of the session. */
  messages?: readonly Message[] | null | undefined;
  /** Tokens that the host is about to add. */
  pendingTokens?: number | null | undefined;
}

/** Result of `context/preflight`. */
export interface PreflightContextResult {
  /** True if the context and the pending tokens fit the budget. */
  fits: boolean;
  /** Tokens of both together. */
  estimatedTokens: number;
  /** How the host should react before it calls the model. */
  action: PreflightAction;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `context/explain`; without `resultId` and `turnId`, the newest answer. */
export interface ExplainContextParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Id of an assemble result; takes precedence over `turnId`. */
  resultId?: ResultId | null | undefined;
  /** The newest assemble result of this turn. */
  turnId?: TurnId | null | undefined;
}

/** Result of `context/explain`. */
export interface ExplainContextResult {
  /** One for each stored message that was considered, oldest first. */
  decisions: readonly ContextDecision[];
  /** What was added from elsewhere. */
  injected: readonly InjectedItem[];
}

/** What became of one stored message in an answer. */
export interface ContextDecision {
  /** The message. */
  messageId: MessageId;
  /** The turn that it belongs to. */
  turnId: TurnId;
  /** Its own size, in tokens. */
  tokens: number;
  /** What happened to it. */
  decision: Decision;
  /** Why. */
  reason: string;
  /** What covers it: a summary's node id, or the rule that left it out. */
  by?: string | null | undefined;
}

/** Content of an answer that is not a message of the session. */
export interface InjectedItem {
  /** The memory source or engine that it came from. */
  pluginName: string;
  /** When its source was asked: at session start, or for this prompt. */
  injectionPoint: InjectionPoint;
  /** Its size, in tokens. */
  tokens: number;
  /** The text. */
  content: string;
  /** Id of the piece within its source. */
  id?: string | null | undefined;
}

/** Params of `context/dispose`. */
export interface DisposeContextParams {
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `context/dispose`: empty. */
export type DisposeContextResult = Record<string, never>;

/** Params of `subagent/prepareSpawn`. */
export interface PrepareSpawnSubagentParams {
  /** Key of the session that spawns. */
  parentSessionKey: SessionKey;
  /** Key of the session that is about to begin. */
  childSessionKey: SessionKey;
  /** `fork` starts the child from a snapshot of the parent, `isolated` starts it empty. */
  contextMode: SpawnMode;
  /** Id of the parent's session, if the host knows it. */
  parentSessionId?: SessionId | null | undefined;
  /** Id of the child's session, if the host knows it. */
  childSessionId?: SessionId | null | undefined;
  /** The host's locator of the parent's transcript; never opened. */
  parentSessionFile?: string | null | undefined;
  /** The host's locator of the child's transcript; never opened. */
  childSessionFile?: string | null | undefined;
  /** The agent that spawns; it can fork only its own sessions. */
  agentId?: AgentId | null | undefined;
  /** Owner of the child; defaults to `agentId`. */
  childAgentId?: AgentId | null | undefined;
  /** Milliseconds after which the preparation is swept. */
  ttlMs?: number | null | undefined;
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `subagent/prepareSpawn`. */
export interface PrepareSpawnSubagentResult {
  /** Id for `subagent/rollbackSpawn`; absent if nothing was prepared. */
  preparationId?: string | null | undefined;
}

/** Params of `subagent/rollbackSpawn`. */
export interface RollbackSpawnSubagentParams {
  /** The preparation to roll back. */
  preparationId: string;
  /** The agent that spawned; preparations of other agents are unknown to it. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `subagent/rollbackSpawn`. */
export interface RollbackSpawnSubagentResult {
  /** False if the preparation is unknown, or the child has already stored something. */
  rolledBack: boolean;
}

/** Params of `subagent/ended`. */
export interface EndedSubagentParams {
  /** Key of the session that has ended. */
  childSessionKey: SessionKey;
  /** `deleted` erases the child's data, if it was spawned; the other reasons keep it. */
  reason: EndReason;
  /** The agent that spawned; children of other agents are left alone. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `subagent/ended`: empty. */
export type EndedSubagentResult = Record<string, never>;

/** Params of `tools/list`. */
export interface ListToolsParams {
  /** List the tools of this session's engine; absent means the connection's engine. */
  sessionId?: SessionId | null | undefined;
  /** Agent that requests the list. */
  agentId?: AgentId | null | undefined;
}

/** Result of `tools/list`. */
export interface ListToolsResult {
  /** The tools that the engine offers; may be empty. */
  tools: readonly ToolDefinition[];
}

/** A tool that the host may offer to its model. */
export interface ToolDefinition {
  /** Name under which `tools/call` knows the tool. */
  name: string;
  /** What the tool does, written for the model. */
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject;
}

/** Params of `tools/call`. */
export interface CallToolsParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Name of the tool, as `tools/list` gave it. */
  name: string;
  /** Arguments that satisfy the tool's input schema; absent means an empty object. */
  arguments?: JsonObject | null | undefined;
}

/** Result of `tools/call`. */
export interface CallToolsResult {
  /** The content for the model. */
  content: readonly TextContent[];
  /** The same content for programs, in the tool's own format. */
  structuredContent?: JsonObject | null | undefined;
  /** True if the tool ran and failed; the content says why. */
  isError?: boolean | null | undefined;
}

/** A piece of text output of a tool. */
export interface TextContent {
  /** Selects the variant. */
  type: "text";
  /** The text, at most 16 000 characters. */
  text: string;
}

/** Params of `memory/register`. */
export interface RegisterMemoryParams {
  /** Name of the source; the same name replaces an earlier registration. */
  name: string;
  /** When to ask the source. */
  injectionPoints: readonly InjectionPoint[];
  /** Maximum tokens of this source in one compilation. */
  tokenBudget?: number | null | undefined;
}

/** Result of `memory/register`. */
export interface RegisterMemoryResult {
  /** Always true: the source is asked from now on, as long as the connection lives. */
  registered: boolean;
}

/** Params of `memory/unregister`. */
export interface UnregisterMemoryParams {
  /** Name of the source. */
  name: string;
}

/** Result of `memory/unregister`. */
export interface UnregisterMemoryResult {
  /** False if no source of this name was registered. */
  unregistered: boolean;
}

/** Params of `memory/compile`. */
export interface CompileMemoryParams {
  /** Agent for whose prompt this is. */
  agentId: AgentId;
  /** Which sources to ask. */
  injectionPoint: InjectionPoint;
  /** The session; if given, fragments already injected into it are left out. */
  sessionId?: SessionId | null | undefined;
  /** Text of the user, to which the memory should be relevant. */
  prompt?: string | null | undefined;
  /** Budget of the compilation, in tokens; absent means the configured one. */
  tokenBudget?: number | null | undefined;
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `memory/compile`. */
export interface CompileMemoryResult {
  /** The text to inject; empty if no source had any. */
  finalContent: string;
  /** Size of the text, in tokens. */
  tokens: number;
  /** True if a model rewrote fragments into one text. */
  synthesized: boolean;
  /** Every fragment that was considered. */
  fragments: readonly CompiledFragment[];
}

/** What became of one fragment. */
export interface CompiledFragment {
  /** The source of the fragment. */
  pluginName: string;
  /** The text as the source supplied it. */
  content: string;
  /** Size used for the budget, in tokens. */
  tokens: number;
  /** 0 to 100. */
  priority: number;
  /** False if it did not fit. */
  included: boolean;
}

/** Params of `engine/list`: empty. */
export type ListEngineParams = Record<string, never>;

/** Result of `engine/list`. */
export interface ListEngineResult {
  /** Every engine that is installed or configured. */
  engines: readonly EngineListing[];
}

/** An engine that the server knows, usable or not. */
export interface EngineListing {
  /** Id by which hosts and configuration select the engine. */
  id: string;
  /** Name for people. */
  name: string;
  /** Version of the engine. */
  version: string;
  /** True if the engine compacts, so that the host must not. */
  ownsCompaction: boolean;
  /** Whether the host waits for `context/maintain` before it continues. */
  turnMaintenanceMode: MaintenanceMode;
  /** Methods that the engine implements itself, such as `afterTurn`; the server answers the others. */
  implements: readonly string[];
  /** Host capabilities without which the engine refuses to start. */
  hostRequirements?: readonly string[] | null | undefined;
  /** Present if this engine replaces the selected one. */
  fallbackFor?: FallbackFor | null | undefined;
  /** True for the engine that serves this connection. */
  active: boolean;
  /** True if the engine can be selected now. */
  available: boolean;
  /** Why it is not available, and what to fix. */
  reason?: string | null | undefined;
}

/** Params of `engine/doctor`. */
export interface DoctorEngineParams {
  /** Token under which the server reports progress. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `engine/doctor`. */
export interface DoctorEngineResult {
  /** True if every check is ok. */
  ok: boolean;
  /** All checks, in a stable order. */
  checks: readonly DoctorCheck[];
  /** Present if a shadow engine is configured. */
  shadow?: ShadowReport | null | undefined;
}

/** One diagnostic check. */
export interface DoctorCheck {
  /** Short stable name, such as `store`. */
  name: string;
  /** True if nothing needs to be done. */
  ok: boolean;
  /** The finding. */
  message: string;
  /** How to fix it. */
  fix?: string | null | undefined;
}

/** Two engines compared on the same requests. */
export interface ShadowReport {
  /** The engine whose answers were sent. */
  primary: ShadowSide;
  /** The engine whose answers were not. */
  shadow: ShadowSide;
  /** Requests that both engines answered. */
  compared: number;
  /** Share of the bytes the primary sent that the shadow would have sent too, verbatim. */
  coverage?: number | null | undefined;
  /** Requests still queued for the shadow. */
  waiting: number;
  /** Requests the shadow never received, because its queue was full or it was suspended. */
  dropped: number;
  /** Requests not compared, because the session changed in the meantime. */
  outdated: number;
  /** Why its last answer failed, if it did. */
  problem?: string | null | undefined;
}

/** Statistics of one of the two engines compared. */
export interface ShadowSide {
  /** Id of the engine; for the primary, of the engine that serves by default. */
  engine: string;
  /** Answers to `context/assemble` that were compared. */
  answers: number;
  /** Requests it failed to answer; counted for the shadow only, since the host sees the primary's. */
  failures: number;
  /** Answers that a provider would refuse. */
  invalid: number;
  /** Mean tokens per answer. */
  meanTokens: number;
  /**
   * Share of the previous answer, in bytes, that the session's next answer begins with: what caches hit.
   */
  prefixKept?: number | null | undefined;
  /** Median latency of the newest answers, in milliseconds. */
  p50Ms: number;
  /** 95th percentile of their latency, in milliseconds. */
  p95Ms: number;
}

/**
 * Params of `session/configure`; at least one of `sessionId` and `agentId` is required. At least one of
 * `sessionId`, `agentId` must be there.
 */
export interface ConfigureSessionParams {
  /** The session to configure. */
  sessionId?: SessionId | null | undefined;
  /** Without `sessionId`, the agent to configure; with it, the owner of the session. */
  agentId?: AgentId | null | undefined;
  /** Engine to use from the next call on; absent keeps the current one. */
  engine?: EngineId | null | undefined;
  /** Settings of the engine; they replace the earlier ones. Absent keeps those. */
  config?: JsonObject | null | undefined;
}

/** Result of `session/configure`: the settings now in force. */
export interface ConfigureSessionResult {
  /** Id of the engine. */
  engine: EngineId;
  /** The settings of the session or agent; `{}` if none. */
  config: JsonObject;
}

/**
 * Params of `session/pin`; exactly one of `messageId` and `text`. Exactly one of `messageId`, `text` must
 * be there.
 */
export interface PinSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** A stored message to keep through compaction. */
  messageId?: MessageId | null | undefined;
  /** A text to keep in the context. */
  text?: string | null | undefined;
  /** Why, for people. */
  note?: string | null | undefined;
}

/** Result of `session/pin`. */
export interface PinSessionResult {
  /** Id for `session/unpin`. */
  pinId: string;
}

/** Params of `session/unpin`. */
export interface UnpinSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The pin to remove. */
  pinId: string;
}

/** Result of `session/unpin`. */
export interface UnpinSessionResult {
  /** False if there is no such pin. */
  unpinned: boolean;
}

/** Params of `session/pins`. */
export interface PinsSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `session/pins`. */
export interface PinsSessionResult {
  /** Every pin of the session, oldest first. */
  pins: readonly Pin[];
}

/** Something that must survive compaction. */
export interface Pin {
  /** Id for `session/unpin`. */
  pinId: string;
  /** The message, if a message is pinned. */
  messageId?: MessageId | null | undefined;
  /** The text, if a text is pinned. */
  text?: string | null | undefined;
  /** Why, for people. */
  note?: string | null | undefined;
  /** When it was pinned. */
  createdAt: string;
}

/** Params of `session/truncate`. */
export interface TruncateSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** The last message to keep. */
  afterMessageId: MessageId;
}

/** Result of `session/truncate`. */
export interface TruncateSessionResult {
  /** How many messages were removed. */
  removedMessages: number;
}

/** Params of `session/fork`. */
export interface ForkSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Id of the copy; must not exist yet. */
  newSessionId: SessionId;
  /** The last message to copy; defaults to all of them. */
  atMessageId?: MessageId | null | undefined;
}

/** Result of `session/fork`. */
export interface ForkSessionResult {
  /** Id of the copy. */
  sessionId: SessionId;
  /** How many messages it has. */
  messageCount: number;
}

/** Params of `session/summaries`. */
export interface SummariesSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `session/summaries`. */
export interface SummariesSessionResult {
  /** Every summary in force, in the order of what it covers, deeper ones first. */
  summaries: readonly SummaryNode[];
  /** The newest compactions, oldest first, as in `details` of `context/compact`. */
  receipts?: readonly JsonObject[] | null | undefined;
}

/** A summary that covers a range of messages. */
export interface SummaryNode {
  /** Id of the summary; the recall tools accept it. */
  nodeId: string;
  /** 0 for a summary of messages, one more than its deepest source for a condensed one. */
  depth: number;
  /** The summary. */
  text: string;
  /** Its size, in tokens. */
  tokens: number;
  /** How it was written, such as `model` or `deterministic`. */
  quality: string;
  /** When it was written. */
  createdAt: string;
  /** The first message that it covers. */
  firstMessageId: MessageId;
  /** The last message that it covers. */
  lastMessageId: MessageId;
  /** How many messages it covers. */
  messageCount: number;
  /** Node ids that were condensed into it; empty for a summary of messages. */
  sources: readonly string[];
}

/** Params of `session/list`. */
export interface ListSessionParams {
  /** Maximum entries on one page; defaults to 100. */
  limit?: number | null | undefined;
  /** Where to continue, from the previous page. */
  cursor?: string | null | undefined;
  /** Only sessions of this agent, and those that no agent owns yet. */
  agentId?: AgentId | null | undefined;
}

/** Result of `session/list`. */
export interface ListSessionResult {
  /** One page of sessions, latest change first. */
  sessions: readonly SessionEntry[];
  /** Requests the next page; absent on the last. */
  nextCursor?: string | null | undefined;
}

/** The key facts of one session. */
export interface SessionEntry {
  /** Id of the session. */
  sessionId: SessionId;
  /** Its alias. */
  sessionKey?: SessionKey | null | undefined;
  /** Id of the engine that serves it. */
  engine: EngineId;
  /** Dialect of its messages. */
  messageFormat: MessageFormat;
  /** How many messages are stored. */
  messageCount: number;
  /** When the first message was stored. */
  createdAt: string;
  /** When it last changed. */
  updatedAt: string;
}

/** Params of `session/get`. */
export interface GetSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `session/get`. */
export interface GetSessionResult {
  /** Id of the session. */
  sessionId: SessionId;
  /** Its alias. */
  sessionKey?: SessionKey | null | undefined;
  /** Id of the engine that serves it. */
  engine: EngineId;
  /** Dialect of its messages. */
  messageFormat: MessageFormat;
  /** How many messages are stored. */
  messageCount: number;
  /** When the first message was stored. */
  createdAt: string;
  /** When it last changed. */
  updatedAt: string;
  /** Owner of the session. */
  agentId?: AgentId | null | undefined;
  /** How many turns it has. */
  turnCount: number;
  /** Present until a background import is complete; `messageCount` shows its progress. */
  importing?: SessionImport | null | undefined;
}

/** An unfinished import. */
export interface SessionImport {
  /** `interrupted` if a process ended during it: the same `context/bootstrap` resumes it. */
  state: ImportState;
  /** Number of messages the session will have at the end. */
  total: number;
}

/** Params of `session/export`. */
export interface ExportSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Where to continue, from the previous page. */
  cursor?: string | null | undefined;
}

/** Result of `session/export`. */
export interface ExportSessionResult {
  /** Id of the session. */
  sessionId: SessionId;
  /** Dialect of the messages. */
  messageFormat: MessageFormat;
  /** One page of messages, oldest first. */
  messages: readonly ExportedMessage[];
  /** Requests the next page; absent on the last. */
  nextCursor?: string | null | undefined;
}

/** A stored message with its metadata. */
export interface ExportedMessage {
  /** Id of the message. */
  messageId: MessageId;
  /** The turn that it belongs to. */
  turnId: TurnId;
  /** The host's timestamp, otherwise the time of receipt. */
  timestamp: string;
  /** The message, byte for byte. */
  message: Message;
  /**
   * Fenced parts of its text that this server wrote, such as memory that the host stored with the message.
   * Each is quoted exactly. No other server can verify them, so an import leaves them out.
   */
  issued?: readonly string[] | null | undefined;
}

/** Params of `session/delete`. */
export interface DeleteSessionParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
}

/** Result of `session/delete`. */
export interface DeleteSessionResult {
  /** False if there was no such session. */
  deleted: boolean;
}

/** Params of `runtime/complete`. */
export interface CompleteRuntimeParams {
  /** What the text is for; a host may choose another model for each. */
  purpose: CompletionPurpose;
  /** The conversation to complete. */
  messages: readonly PromptMessage[];
  /** Instructions that precede the conversation. */
  systemPrompt?: string | null | undefined;
  /** Largest answer, in tokens. */
  maxTokens: number;
  /** Model that the configuration requests; the host decides. */
  model?: string | null | undefined;
  /** The session for which the completion is requested. */
  sessionId?: SessionId | null | undefined;
}

/** A message of a completion, in no dialect. */
export interface PromptMessage {
  /** Who speaks. */
  role: PromptRole;
  /** The text. */
  content: string;
}

/** Result of `runtime/complete`. */
export interface CompleteRuntimeResult {
  /** What the model wrote. */
  text: string;
  /** The model that wrote it. */
  model?: string | null | undefined;
  /** Its token usage. */
  usage?: CompletionUsage | null | undefined;
}

/** Token usage of a completion. */
export interface CompletionUsage {
  /** Tokens of the input. */
  inputTokens: number;
  /** Tokens of the output. */
  outputTokens: number;
}

/** Params of `runtime/compact`: those of `context/compact`, passed on. */
export interface CompactRuntimeParams {
  /** The session: a key that the host chooses. */
  sessionId: SessionId;
  /** The agent's alias for the session; it refers to the session it was last used with. */
  sessionKey?: SessionKey | null | undefined;
  /** Owner of the session: the first agent that uses it. To other agents the session does not exist. */
  agentId?: AgentId | null | undefined;
  /** Token under which the server reports progress by `$/progress`. */
  workDoneToken?: number | string | null | undefined;
  /** Maximum tokens of the context afterwards. */
  tokenBudget?: number | null | undefined;
  /** Compact even if the context fits. */
  force?: boolean | null | undefined;
  /** Why it is forced, such as `overflow` or `manual`. */
  forceReason?: string | null | undefined;
  /** The host's own count, if it has one. */
  currentTokenCount?: number | null | undefined;
  /** Compact down to the budget, or to the engine's own threshold. */
  compactionTarget?: CompactionTarget | null | undefined;
  /** What the summary should focus on. */
  customInstructions?: string | null | undefined;
}

/** Result of `runtime/compact`: passed back as that of `context/compact`. */
export interface CompactRuntimeResult {
  /** False if something failed; declining is not a failure. */
  ok: boolean;
  /** True if the context has changed. */
  compacted: boolean;
  /** Why nothing was compacted. */
  reason?: string | null | undefined;
  /** What was done. */
  result?: CompactionResult | null | undefined;
  /** Present if the selected engine did not serve this request, with the reason. */
  fallbackFor?: FallbackFor | null | undefined;
}

/** Params of `runtime/rewriteTranscript`. */
export interface RewriteTranscriptRuntimeParams {
  /** The session whose transcript to rewrite. */
  sessionId: SessionId;
  /** Alias of the session. */
  sessionKey?: SessionKey | null | undefined;
  /** The replacements; other messages stay. */
  replacements: readonly TranscriptReplacement[];
}

/** One message of the host's transcript to replace. */
export interface TranscriptReplacement {
  /** Id of the message. */
  messageId: MessageId;
  /** What to put in its place. */
  message: Message;
}

/** Result of `runtime/rewriteTranscript`. */
export interface RewriteTranscriptRuntimeResult {
  /** True if the transcript has changed. */
  changed: boolean;
  /** Number of bytes by which it shrank. */
  bytesFreed: number;
  /** How many messages were replaced. */
  rewrittenEntries: number;
  /** Why nothing, or not everything, was replaced. */
  reason?: string | null | undefined;
}

/** Params of `memory/getContext`, a request to the host. */
export interface GetContextMemoryParams {
  /** Name under which the source was registered. */
  name: string;
  /** Agent for whose prompt this is. */
  agentId: AgentId;
  /** Why the source is asked. */
  injectionPoint: InjectionPoint;
  /** The session, if there is one. */
  sessionId?: SessionId | null | undefined;
  /** Alias of the session. */
  sessionKey?: SessionKey | null | undefined;
  /** Text of the user, to which the memory should be relevant. */
  prompt?: string | null | undefined;
}

/** Result of `memory/getContext`. */
export interface GetContextMemoryResult {
  /** The source's fragments, best first; may be empty. */
  fragments: readonly MemoryFragment[];
}

/** A piece of text that a memory source wants the model to see. */
export interface MemoryFragment {
  /** Id of the piece within its source; defaults to a hash of the content. */
  id?: string | null | undefined;
  /** The text. */
  content: string;
  /** Size in tokens; if absent or not positive, the server estimates it. */
  tokens?: number | null | undefined;
  /** 0 to 100; the lowest is cut first. Absent means `50`. */
  priority?: number | null | undefined;
  /** Heading for people. */
  label?: string | null | undefined;
  /** False keeps the text verbatim and away from any model; absent means true. */
  synthesize?: boolean | null | undefined;
}

/** Params of `memory/contextInjected`: the outcome of a compilation. */
export interface ContextInjectedMemoryParams {
  /** Agent for whose prompt this was. */
  agentId: AgentId;
  /** Which sources were asked. */
  injectionPoint: InjectionPoint;
  /** Every fragment that was considered. */
  fragments: readonly CompiledFragment[];
  /** True if a model rewrote fragments into one text. */
  synthesized: boolean;
  /** The text that the answer carries. */
  finalContent: string;
  /** When it was compiled. */
  timestamp: string;
  /** The session, if there is one. */
  sessionId?: SessionId | null | undefined;
}

/** Params of `session/changed`. */
export interface ChangedSessionParams {
  /** The session that changed. */
  sessionId: SessionId;
  /** What happened; `created`, `appended`, `changed` only if the host declares `session/changed`. */
  reason: SessionChange;
}

/** Params of `tools/listChanged`. */
export interface ListChangedToolsParams {
  /** The session whose tools changed; absent means every session. */
  sessionId?: SessionId | null | undefined;
}

/** Progress value: work has begun. */
export interface WorkDoneProgressBegin {
  /** Selects the variant. */
  kind: "begin";
  /** Title of the work, such as `Compacting`. */
  title: string;
  /** Whether cancelling the request stops the work. */
  cancellable?: boolean | null | undefined;
  /** Detail that may change as the work goes on. */
  message?: string | null | undefined;
  /** Percentage done, 0 to 100; absent if unknown. */
  percentage?: number | null | undefined;
}

/** Progress value: work goes on. */
export interface WorkDoneProgressReport {
  /** Selects the variant. */
  kind: "report";
  /** Whether cancelling the request stops the work. */
  cancellable?: boolean | null | undefined;
  /** Detail of the current step. */
  message?: string | null | undefined;
  /** Percentage done, 0 to 100, never falling. */
  percentage?: number | null | undefined;
}

/** Progress value: work has ended. */
export interface WorkDoneProgressEnd {
  /** Selects the variant. */
  kind: "end";
  /** How it ended. */
  message?: string | null | undefined;
}

/** Data of ParseError and InvalidRequest. */
export interface FrameErrorData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The bound that was exceeded, in bytes. */
  limit?: number | null | undefined;
}

/** What every error carries as `data`. */
export interface ErrorData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
}

/** Data of InvalidParams. */
export interface InvalidParamsData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** JSON Pointer into the params; empty for the params as a whole. */
  path?: string | null | undefined;
  /** Values that would be accepted, such as protocol versions. */
  supported?: readonly string[] | null | undefined;
  /** Dialect of the session, if the connection has another one. */
  messageFormat?: MessageFormat | null | undefined;
}

/** Data of EngineUnavailable. */
export interface EngineUnavailableData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The engine that was selected. */
  engineId?: EngineId | null | undefined;
  /** Host capabilities that the engine requires and the host did not declare. */
  missingCapabilities?: readonly string[] | null | undefined;
}

/** Data of ContextOverflow. */
export interface ContextOverflowData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The smallest budget with which the same request succeeds, in tokens. */
  required: number;
  /** The budget that was requested, in tokens. */
  tokenBudget: number;
}

/** Data of SessionNotFound. */
export interface SessionNotFoundData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The session that was requested. */
  sessionId?: SessionId | null | undefined;
}

/** Data of HostCapabilityMissing. */
export interface HostCapabilityMissingData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** What the host must declare in `hostCapabilities`. */
  capability: string;
}

/** Data of EngineFailed. */
export interface EngineFailedData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The engine that failed. */
  engineId: EngineId;
  /** The method that failed. */
  method: string;
  /** Its error message, without traceback and local paths. */
  message: string;
}

/** Data of Busy. */
export interface BusyData {
  /** True if the same request may succeed later unchanged. */
  retryable: boolean;
  /** What the caller can do about it, in one sentence. */
  hint: string;
  /** The bound that was reached, in bytes. */
  limit?: number | null | undefined;
}
