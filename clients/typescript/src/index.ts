/** Starts a context-sidecar and speaks the Context Engine Protocol with it. */

export { SidecarClient } from "./client.js";
export type { CallOptions, ClientOptions } from "./client.js";
export type { ServerNotificationHandlers, ServerRequestHandlers } from "./connection.js";
export { applyEdits } from "./deltas.js";
export type { AssembledContext } from "./deltas.js";
export * from "./errors.js";
export { launched, locateSidecar } from "./locate.js";
export type { Command } from "./locate.js";
export { leaseSidecar } from "./shared.js";
export type { Lease } from "./shared.js";
export { stripTerse, TerseStripper } from "./terse.js";
export type { ErrorDataByCode } from "./protocol/errors.js";
export { PROTOCOL_VERSION } from "./protocol/methods.js";
export type { HostNotifications, HostRequests, ServerNotifications, ServerRequests } from "./protocol/methods.js";
export type * from "./protocol/types.js";
