/** The summaries of a session as a tree: what was condensed stands under what it became. */

import type { SummaryNode } from "context-sidecar-client";

export class SummaryTree {
  #nodes: ReadonlyMap<string, SummaryNode>;
  readonly roots: readonly SummaryNode[];

  constructor(nodes: readonly SummaryNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.nodeId, node]));
    const condensed = new Set(nodes.flatMap(({ sources }) => sources));
    this.roots = nodes.filter(({ nodeId }) => !condensed.has(nodeId));
  }

  /** What the summary was made of, as far as it is in force still. */
  sourcesOf(node: SummaryNode): SummaryNode[] {
    return node.sources.flatMap((nodeId) => this.#nodes.get(nodeId) ?? []);
  }
}
