/** Names of documents that show something of a session. */

/** The messages of a stored session, one a line; the sidecar knows these names too. */
export const SESSION_SCHEME = "context-sidecar";
/** Texts that the extension has made, such as an assembled context. */
export const TEXT_SCHEME = "context-sidecar-text";

const AUTHORITY = "session";

/** The document of a session: its name, and that of its position, are those that the sidecar gives in its answers. */
export function sessionUri(sessionId: string): string {
  return `${SESSION_SCHEME}://${AUTHORITY}/${encoded(sessionId)}`;
}

/** The session that a document shows; its parts are as the editor gives them, decoded once. */
export function sessionOf(scheme: string, path: string): string | undefined {
  return scheme === SESSION_SCHEME && path.length > 1 ? path.slice(1) : undefined;
}

/** A position from 1 in the fragment of a name. */
export function positionOf(fragment: string): number | undefined {
  return /^[1-9]\d{0,15}$/.test(fragment) ? Number(fragment) : undefined;
}

function encoded(sessionId: string): string {
  // Ids may hold half of a pair of surrogates, which has no form in UTF-8.
  return encodeURIComponent(sessionId.replace(/\p{Surrogate}/gu, "\uFFFD"));
}
