/** Where what was searched for stands in a line. */

/** Where all the words stand as they were typed, else the longest of them that the line has; `[0, 0]` without any. */
export function matchIn(line: string, words: string): readonly [start: number, end: number] {
  const folded = line.toLowerCase();
  // A line whose length changes with its case has other places than its folded form.
  if (folded.length !== line.length) return [0, 0];
  const single = words.split(/\s+/u).toSorted((one, other) => other.length - one.length);
  for (const wanted of [words.trim(), ...single]) {
    const start = wanted === "" ? -1 : folded.indexOf(wanted.toLowerCase());
    if (start >= 0) return [start, start + wanted.length];
  }
  return [0, 0];
}
