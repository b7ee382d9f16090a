/** Puts text that nobody vouches for into HTML. */

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Markup that is made of parts which are safe each. */
export class Html {
  constructor(readonly markup: string) {}
}

type Part = Html | readonly Html[] | string | number | undefined;

/** Markup from a template: what is put into it is escaped unless it is markup itself. */
export function html(fixed: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(fixed.map((text, place) => text + rendered(parts[place])).join(""));
}

function rendered(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Html) return part.markup;
  if (typeof part === "object") return part.map(({ markup }) => markup).join("");
  return String(part).replace(/[&<>"']/g, (letter) => ENTITIES[letter] as string);
}
