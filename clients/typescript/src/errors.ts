/** The errors that a caller of the client can meet. */

import { ErrorCode } from "./protocol/errors.js";
import type { ErrorDataByCode } from "./protocol/errors.js";

/** What every error of this package derives from. */
export class SidecarError extends Error {
  override name = "SidecarError";
}

/** The sidecar answered with an error; `code` is one of `ErrorCode`. */
export class ResponseError extends SidecarError {
  override name = "ResponseError";

  constructor(
    readonly method: string,
    readonly code: number,
    message: string,
    readonly data: unknown,
  ) {
    super(`${method}: ${message}`);
  }

  /** True where the same request may succeed later without a change. */
  get retryable(): boolean {
    return this.member("retryable") === true;
  }

  /** What to do about it, in one sentence; empty where the sidecar does not say. */
  get hint(): string {
    const hint = this.member("hint");
    return typeof hint === "string" ? hint : "";
  }

  private member(name: string): unknown {
    return typeof this.data === "object" && this.data !== null
      ? (this.data as Record<string, unknown>)[name]
      : undefined;
  }
}

/** No sidecar could be found or started; the message says what to install or configure. */
export class SidecarNotFound extends SidecarError {
  override name = "SidecarNotFound";
}

/** The process ended, or the connection broke, before the answer came. */
export class ConnectionLost extends SidecarError {
  override name = "ConnectionLost";
}

/** No answer came within the time that the caller allows. */
export class RequestTimeout extends SidecarError {
  override name = "RequestTimeout";
}

/** The client was closed. */
export class ClientClosed extends SidecarError {
  override name = "ClientClosed";
}

/** True for an answer with this code, and then `error.data` has the type that belongs to it. */
export function isResponseError<Code extends keyof ErrorDataByCode>(
  error: unknown,
  code: Code,
): error is ResponseError & { readonly code: Code; readonly data: ErrorDataByCode[Code] } {
  return error instanceof ResponseError && error.code === code;
}

export { ErrorCode };
