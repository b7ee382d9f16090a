/** What people are told when a request has failed. */

/** What happened, and what to do where the sidecar says so. */
export function explained(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = hintOf(error);
  return hint === "" || message.includes(hint) ? message : `${message} (${hint})`;
}

function hintOf(error: unknown): string {
  if (typeof error !== "object" || error === null || !("data" in error)) return "";
  const { data } = error;
  if (typeof data !== "object" || data === null || !("hint" in data)) return "";
  return typeof data.hint === "string" ? data.hint : "";
}
