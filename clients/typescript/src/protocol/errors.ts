// Generated from sidecar/protocol by `make schema`; do not edit.

import type {
  BusyData,
  ContextOverflowData,
  EngineFailedData,
  EngineUnavailableData,
  ErrorData,
  FrameErrorData,
  HostCapabilityMissingData,
  InvalidParamsData,
  SessionNotFoundData,
} from "./types.js";

/** The code of every error of the protocol. */
export const ErrorCode = {
  /** The body is not JSON text in UTF-8, is empty, or has another charset. */
  ParseError: -32700,
  /**
   * The message is not a single JSON-RPC request, its length is unusable, its id is taken, or it comes at
   * the wrong time.
   */
  InvalidRequest: -32600,
  /** The server has no method of this name. */
  MethodNotFound: -32601,
  /** The params are not an object, or a member is missing, of the wrong type, or not acceptable. */
  InvalidParams: -32602,
  /** The server has a defect. */
  InternalError: -32603,
  /** A request came before initialize has succeeded. */
  ServerNotInitialized: -32002,
  /** The request was cancelled and has had no effect. */
  RequestCancelled: -32800,
  /** The selected engine cannot be found, is configured wrongly, or needs a capability of the host. */
  EngineUnavailable: 1001,
  /** Not even the smallest valid context fits the token budget. */
  ContextOverflow: 1002,
  /** The session does not exist in this namespace, or belongs to another agent. */
  SessionNotFound: 1003,
  /** The request needs a capability that the host does not declare. */
  HostCapabilityMissing: 1004,
  /** The engine raised an error or took too long. */
  EngineFailed: 1005,
  /** The store cannot be opened, read or written. */
  StoreUnavailable: 1006,
  /** The server's queue of waiting requests is full. */
  Busy: 1007,
} as const;

/** The `data` type of every error, by code. */
export interface ErrorDataByCode {
  [-32700]: FrameErrorData;
  [-32600]: FrameErrorData;
  [-32601]: ErrorData;
  [-32602]: InvalidParamsData;
  [-32603]: ErrorData;
  [-32002]: ErrorData;
  [-32800]: ErrorData;
  [1001]: EngineUnavailableData;
  [1002]: ContextOverflowData;
  [1003]: SessionNotFoundData;
  [1004]: HostCapabilityMissingData;
  [1005]: EngineFailedData;
  [1006]: ErrorData;
  [1007]: BusyData;
}
