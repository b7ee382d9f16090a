/** What the parts of the extension ask the sidecar by. */

import type { HostRequests } from "context-sidecar-client";

export type Params<Method extends keyof HostRequests> = HostRequests[Method]["params"];
export type Result<Method extends keyof HostRequests> = HostRequests[Method]["result"];

/** A connection to a sidecar, whoever keeps it. */
export interface Requests {
  request<Method extends keyof HostRequests>(method: Method, params: Params<Method>): Promise<Result<Method>>;
}
