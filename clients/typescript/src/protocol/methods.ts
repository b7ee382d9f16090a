// Generated from sidecar/protocol by `make schema`; do not edit.

import type {
  AfterTurnContextParams,
  AfterTurnContextResult,
  AssembleContextParams,
  AssembleContextResult,
  BootstrapContextParams,
  BootstrapContextResult,
  CallToolsParams,
  CallToolsResult,
  CancelRequestParams,
  CancelWindowWorkDoneProgressParams,
  ChangedSessionParams,
  CommitTurnContextParams,
  CommitTurnContextResult,
  CompactContextParams,
  CompactContextResult,
  CompactRuntimeParams,
  CompactRuntimeResult,
  CompileMemoryParams,
  CompileMemoryResult,
  CompleteRuntimeParams,
  CompleteRuntimeResult,
  ConfigureSessionParams,
  ConfigureSessionResult,
  ContextInjectedMemoryParams,
  CreateWindowWorkDoneProgressParams,
  DeleteSessionParams,
  DeleteSessionResult,
  DisposeContextParams,
  DisposeContextResult,
  DoctorEngineParams,
  DoctorEngineResult,
  EndedSubagentParams,
  EndedSubagentResult,
  ExitParams,
  ExplainContextParams,
  ExplainContextResult,
  ExportSessionParams,
  ExportSessionResult,
  ForkSessionParams,
  ForkSessionResult,
  GetContextMemoryParams,
  GetContextMemoryResult,
  GetSessionParams,
  GetSessionResult,
  IngestBatchContextParams,
  IngestBatchContextResult,
  IngestContextParams,
  IngestContextResult,
  InitializeParams,
  InitializeResult,
  InitializedParams,
  ListChangedToolsParams,
  ListEngineParams,
  ListEngineResult,
  ListSessionParams,
  ListSessionResult,
  ListToolsParams,
  ListToolsResult,
  LogMessageWindowParams,
  MaintainContextParams,
  MaintainContextResult,
  PinSessionParams,
  PinSessionResult,
  PinsSessionParams,
  PinsSessionResult,
  PreflightContextParams,
  PreflightContextResult,
  PrepareSpawnSubagentParams,
  PrepareSpawnSubagentResult,
  ProgressParams,
  RegisterMemoryParams,
  RegisterMemoryResult,
  RewriteTranscriptRuntimeParams,
  RewriteTranscriptRuntimeResult,
  RollbackSpawnSubagentParams,
  RollbackSpawnSubagentResult,
  SetTraceParams,
  ShutdownParams,
  SummariesSessionParams,
  SummariesSessionResult,
  TruncateSessionParams,
  TruncateSessionResult,
  UnpinSessionParams,
  UnpinSessionResult,
  UnregisterMemoryParams,
  UnregisterMemoryResult,
} from "./types.js";

/** Requests that the host sends. */
export interface HostRequests {
  /** Opens the connection: settles version, engine and dialect. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Ends the work; only exit may follow. */
  "shutdown": { params: ShutdownParams; result: null };
  /** Imports the new messages of the host's transcript. */
  "context/bootstrap": { params: BootstrapContextParams; result: BootstrapContextResult };
  /** Stores one message. */
  "context/ingest": { params: IngestContextParams; result: IngestContextResult };
  /** Stores several messages, all or none. */
  "context/ingestBatch": { params: IngestBatchContextParams; result: IngestBatchContextResult };
  /** Returns what the model should see, within a token budget. */
  "context/assemble": { params: AssembleContextParams; result: AssembleContextResult };
  /** Makes the context smaller. */
  "context/compact": { params: CompactContextParams; result: CompactContextResult };
  /** Reports the end of a turn and its messages. */
  "context/afterTurn": { params: AfterTurnContextParams; result: AfterTurnContextResult };
  /** Stores a turn exactly once. */
  "context/commitTurn": { params: CommitTurnContextParams; result: CommitTurnContextResult };
  /** Lets the engine tidy up between turns. */
  "context/maintain": { params: MaintainContextParams; result: MaintainContextResult };
  /** Checks whether the context fits before the model is called. */
  "context/preflight": { params: PreflightContextParams; result: PreflightContextResult };
  /** Explains what the model saw, and why. */
  "context/explain": { params: ExplainContextParams; result: ExplainContextResult };
  /** Flushes and releases the engine. */
  "context/dispose": { params: DisposeContextParams; result: DisposeContextResult };
  /** Prepares the context of a child session. */
  "subagent/prepareSpawn": { params: PrepareSpawnSubagentParams; result: PrepareSpawnSubagentResult };
  /** Rolls back a preparation. */
  "subagent/rollbackSpawn": { params: RollbackSpawnSubagentParams; result: RollbackSpawnSubagentResult };
  /** Reports the end of a child session. */
  "subagent/ended": { params: EndedSubagentParams; result: EndedSubagentResult };
  /** Describes the tools that the engine offers to the model. */
  "tools/list": { params: ListToolsParams; result: ListToolsResult };
  /** Runs one of the tools. */
  "tools/call": { params: CallToolsParams; result: CallToolsResult };
  /** Offers the host as a memory source. */
  "memory/register": { params: RegisterMemoryParams; result: RegisterMemoryResult };
  /** Withdraws a memory source. */
  "memory/unregister": { params: UnregisterMemoryParams; result: UnregisterMemoryResult };
  /** Asks all memory sources and composes one text. */
  "memory/compile": { params: CompileMemoryParams; result: CompileMemoryResult };
  /** Lists the engines that the server knows. */
  "engine/list": { params: ListEngineParams; result: ListEngineResult };
  /** Finds problems and says how to fix them. */
  "engine/doctor": { params: DoctorEngineParams; result: DoctorEngineResult };
  /** Selects engine and settings for a session or an agent. */
  "session/configure": { params: ConfigureSessionParams; result: ConfigureSessionResult };
  /** Keeps a message or a text through every compaction. */
  "session/pin": { params: PinSessionParams; result: PinSessionResult };
  /** Removes a pin. */
  "session/unpin": { params: UnpinSessionParams; result: UnpinSessionResult };
  /** Lists the pins. */
  "session/pins": { params: PinsSessionParams; result: PinsSessionResult };
  /** Removes everything after a message. */
  "session/truncate": { params: TruncateSessionParams; result: TruncateSessionResult };
  /** Copies a session under a new id. */
  "session/fork": { params: ForkSessionParams; result: ForkSessionResult };
  /** Lists the summaries in force. */
  "session/summaries": { params: SummariesSessionParams; result: SummariesSessionResult };
  /** Lists the sessions of the namespace, page by page. */
  "session/list": { params: ListSessionParams; result: ListSessionResult };
  /** Returns the key facts of one session. */
  "session/get": { params: GetSessionParams; result: GetSessionResult };
  /** Returns the stored messages, page by page. */
  "session/export": { params: ExportSessionParams; result: ExportSessionResult };
  /** Erases a session. */
  "session/delete": { params: DeleteSessionParams; result: DeleteSessionResult };
}

/** Notifications that the host sends. */
export interface HostNotifications {
  /** The host has received the answer. */
  "initialized": InitializedParams;
  /** Ends the process. */
  "exit": ExitParams;
  /** The sender cancels one of its requests. */
  "$/cancelRequest": CancelRequestParams;
  /** Sets how much the server traces. */
  "$/setTrace": SetTraceParams;
  /** The user stops work that the server has announced. */
  "window/workDoneProgress/cancel": CancelWindowWorkDoneProgressParams;
}

/** Requests that the server sends and the host answers. */
export interface ServerRequests {
  /** Announces progress of work that no request of the host started. */
  "window/workDoneProgress/create": { params: CreateWindowWorkDoneProgressParams; result: null };
  /** Asks the host for a model's completion. */
  "runtime/complete": { params: CompleteRuntimeParams; result: CompleteRuntimeResult };
  /** Asks the host to compact on its own. */
  "runtime/compact": { params: CompactRuntimeParams; result: CompactRuntimeResult };
  /** Asks the host to replace messages of its transcript. */
  "runtime/rewriteTranscript": { params: RewriteTranscriptRuntimeParams; result: RewriteTranscriptRuntimeResult };
  /** Asks a memory source of the host for its fragments. */
  "memory/getContext": { params: GetContextMemoryParams; result: GetContextMemoryResult };
}

/** Notifications that the server sends. */
export interface ServerNotifications {
  /** The sender cancels one of its requests. */
  "$/cancelRequest": CancelRequestParams;
  /** Reports progress of a request. */
  "$/progress": ProgressParams;
  /** A line for the log of the host. */
  "window/logMessage": LogMessageWindowParams;
  /** Reports the outcome of a memory compilation. */
  "memory/contextInjected": ContextInjectedMemoryParams;
  /** A session has changed. */
  "session/changed": ChangedSessionParams;
  /** The list of tools has changed. */
  "tools/listChanged": ListChangedToolsParams;
}

/** The newest version of the protocol that these types describe. */
export const PROTOCOL_VERSION = "1.0";
