/** Takes `<terse>` tags out of an assistant's text while the text arrives. */

const OPENING = "<terse>";
const CLOSING = "</terse>";
const SHORTEST_FENCE = 3;

/** Where a line stands: before its first letter, in a run of fence characters, behind one, or anywhere else. */
type Line = "indent" | "run" | "trail" | "text";

interface Run {
  readonly letter: string;
  count: number;
}

/** Holds back what may still become a tag, and nothing else; tags in code fences are text. */
export class TerseStripper {
  #held = "";
  /** How far `#held` was read. */
  #at = 0;
  /** Where in `#held` the open tag begins; -1 where none is open. */
  #open = -1;
  #line: Line = "indent";
  #run: Run = { letter: "", count: 0 };
  #fence: Run | undefined;

  /** What can be shown of the text up to here and was not given back before. */
  feed(chunk: string): string {
    this.#held += chunk;
    let shown = "";
    while (this.#at < this.#held.length) {
      const step = this.#step();
      if (step === undefined) break;
      shown += step;
    }
    const until = this.#open < 0 ? this.#at : this.#open;
    shown += this.#held.slice(0, until);
    this.#drop(until);
    return shown;
  }

  /** The rest: what looked like the beginning of a tag and was none. */
  close(): string {
    const rest = this.#held;
    this.#held = "";
    this.#at = 0;
    this.#open = -1;
    return rest;
  }

  /** Reads on; the text in front of a tag where one has ended, undefined where more is needed to tell. */
  #step(): string | undefined {
    const letter = this.#held[this.#at] as string;
    if (this.#line === "text") return this.#readText(letter);
    const blank = letter === " " || letter === "\t" || letter === "\r";
    if (this.#line === "run") this.#readRun(letter);
    else if (blank) this.#at += 1;
    else if (this.#line === "trail") {
      if (letter === "\n") this.#fence = undefined;
      this.#line = "text";
    } else if (letter === "`" || letter === "~") {
      this.#line = "run";
      this.#run = { letter, count: 0 };
    } else this.#line = "text";
    return "";
  }

  #readRun(letter: string): void {
    const run = this.#run;
    if (letter === run.letter) {
      this.#at += 1;
      run.count += 1;
      if (this.#fence === undefined && run.count >= SHORTEST_FENCE) this.#open = -1;
      return;
    }
    const fence = this.#fence;
    const ends = fence !== undefined && run.letter === fence.letter && run.count >= fence.count;
    if (fence === undefined && run.count >= SHORTEST_FENCE) this.#fence = run;
    this.#line = ends ? "trail" : "text";
  }

  #readText(letter: string): string | undefined {
    if (letter === "\n") this.#line = "indent";
    else if (letter === "<" && this.#fence === undefined) return this.#readBracket();
    this.#at += 1;
    return "";
  }

  #readBracket(): string | undefined {
    const opening = this.#begins(OPENING);
    const closing = this.#begins(CLOSING);
    if (opening === "maybe" || closing === "maybe") return undefined;
    if (opening === "yes") {
      this.#open = this.#at;
      this.#at += OPENING.length;
    } else if (closing === "yes") {
      this.#at += CLOSING.length;
      if (this.#open >= 0) return this.#cut();
    } else this.#at += 1;
    return "";
  }

  /** Leaves out the tag that ends here; what stands in front of it can be shown. */
  #cut(): string {
    const before = this.#held.slice(0, this.#open);
    this.#open = -1;
    this.#drop(this.#at);
    return before;
  }

  #drop(length: number): void {
    this.#held = this.#held.slice(length);
    this.#at -= length;
    if (this.#open >= 0) this.#open -= length;
  }

  /** Whether a mark stands here, or the text ends before that can be told. */
  #begins(mark: string): "yes" | "no" | "maybe" {
    const piece = this.#held.slice(this.#at, this.#at + mark.length);
    if (piece.toLowerCase() !== mark.slice(0, piece.length)) return "no";
    return piece.length === mark.length ? "yes" : "maybe";
  }
}

/** A whole text without its tags; everything else stays, white space too. */
export function stripTerse(text: string): string {
  const stripper = new TerseStripper();
  return stripper.feed(text) + stripper.close();
}
