/** Names the session of a call to the sidecar, with nothing else of the call. */

import type { SessionParams } from "./host.js";

export interface SessionName {
  sessionId: string;
  sessionKey?: string;
  agentId?: string;
}

/** Key of a session that is a copy of another one, made for one internal turn. */
const COPIES = "internal-session-effects-";

/** Session, alias and owner, as far as the host tells them. */
export function session(params: SessionParams & { admission?: { agentId?: string | undefined } | undefined }): SessionName {
  const { sessionId, sessionKey } = params;
  const agentId = params.sessionTarget?.agentId ?? params.admission?.agentId ?? agentOf(sessionKey) ?? params.agentId;
  return {
    sessionId,
    ...(sessionKey ? { sessionKey } : {}),
    ...(agentId ? { agentId } : {}),
  };
}

/** True where nothing of the session may be stored. */
export function isCopy(sessionId: string): boolean {
  return sessionId.startsWith(COPIES);
}

/** The agent in a key such as `agent:main:telegram`. */
export function agentOf(sessionKey: string | undefined): string | undefined {
  return sessionKey === undefined ? undefined : /^agent:([^:]+):/.exec(sessionKey)?.[1];
}
