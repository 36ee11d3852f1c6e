import { addNotes, type ImportNotes, noteSkip, type TranscriptEntry, TroupeError } from './troupe.ts';

/** A record of a session that is a tree: every record names the one that it follows. */
export interface BranchNode {
  line: number;
  id: string | null;
  /**
   * The id of the record that it follows. `null`: it begins the conversation again. `undefined`: it follows the record before it.
   */
  parent: string | null | undefined;
  /**
   * The records to which it is an alternative, among those that follow the same record.
   *   prompt  to other prompts
   *   answer  to other answers to the same prompt
   *   any     to every other record
   *   step    to none
   *   note    to none, and what follows it follows the record before it
   */
  kind: 'prompt' | 'answer' | 'any' | 'step' | 'note';
  /** Records of one take are not alternatives to each other. */
  take: string;
  entries: TranscriptEntry[];
  notes: ImportNotes;
}

const ROOT = -1;

/**
 * For each record whether it is on an abandoned branch. Among alternatives, the branch with the newest record is active. A
 * record without alternatives stays, so that a chain that the recording program broke loses nothing.
 */
export function leftBranches(nodes: readonly BranchNode[]): boolean[] {
  const anchors = anchorsOf(nodes);
  const newest = newestBelow(anchors);
  const groups = new Map<string, { take: string; newest: number }>();
  const keys = nodes.map((node, i) => {
    const anchor = anchors[i] ?? ROOT;
    const rivals = rivalsOf(node, nodes[anchor]);
    return rivals === null ? null : `${anchor} ${rivals}`;
  });
  for (const [i, node] of nodes.entries()) {
    const key = keys[i];
    if (key == null) continue;
    const known = groups.get(key);
    const own = newest[i] ?? i;
    if (!known || own > known.newest) groups.set(key, { take: node.take, newest: own });
  }
  const isLeft = nodes.map((node, i) => {
    const key = keys[i];
    return key != null && groups.get(key)?.take !== node.take;
  });
  return inherited(isLeft, anchors);
}

function rivalsOf({ kind }: BranchNode, anchor: BranchNode | undefined): string | null {
  if (kind === 'any' || kind === 'prompt') return kind;
  return kind === 'answer' && anchor?.kind === 'prompt' ? kind : null;
}

/** The record that each one follows. Notes are skipped. */
function anchorsOf(nodes: readonly BranchNode[]): number[] {
  const places = new Map<string, number>();
  for (const [i, { id }] of nodes.entries()) if (id !== null && !places.has(id)) places.set(id, i);
  const followed = nodes.map(({ parent }, i) => {
    if (parent === null) return ROOT;
    const place = parent === undefined ? undefined : places.get(parent);
    return place === undefined || place === i ? i - 1 : place;
  });
  // A chain of notes is walked once: later walks stop at the first resolved note.
  const resolved = new Map<number, number>();
  return followed.map((first) => {
    const walked: number[] = [];
    const seen = new Set<number>();
    let at = first;
    while (at !== ROOT && nodes[at]?.kind === 'note' && !seen.has(at)) {
      const known = resolved.get(at);
      if (known !== undefined) {
        at = known;
        break;
      }
      seen.add(at);
      walked.push(at);
      at = followed[at] ?? ROOT;
    }
    if (seen.has(at)) at = ROOT;
    for (const note of walked) resolved.set(note, at);
    return at;
  });
}

/** For each record, the newest one among it and those below it. */
function newestBelow(anchors: readonly number[]): number[] {
  const newest: number[] = Array.from({ length: anchors.length }, () => ROOT);
  for (let i = anchors.length - 1; i >= 0; i -= 1) {
    for (let at = i; at !== ROOT && newest[at] === ROOT; at = anchors[at] ?? ROOT) newest[at] = i;
  }
  return newest;
}

/** Records that follow an abandoned one are abandoned too. */
function inherited(isLeft: readonly boolean[], anchors: readonly number[]): boolean[] {
  const known: (boolean | undefined)[] = isLeft.map((left) => (left ? true : undefined));
  for (let i = 0; i < known.length; i += 1) {
    const walked = new Set<number>();
    let at = i;
    while (at !== ROOT && known[at] === undefined && !walked.has(at)) {
      walked.add(at);
      at = anchors[at] ?? ROOT;
    }
    const left = known[at] ?? false;
    for (const each of walked) known[each] = left;
  }
  return known.map((left) => left ?? false);
}

/** The entries of the active branch. Records of other branches are counted. */
export function* activeBranch(
  nodes: readonly BranchNode[],
  report: ImportNotes,
): Generator<TranscriptEntry, void> {
  const isLeft = leftBranches(nodes);
  for (const [i, node] of nodes.entries())
    if (isLeft[i] !== true || !noteLeft(node, report)) {
      addNotes(report, node.notes);
      yield* node.entries;
    }
}

/** Counts a record of an abandoned branch. False if it has no text. */
export function noteLeft({ entries, line }: BranchNode, report: ImportNotes): boolean {
  if (entries.length > 0)
    noteSkip(
      report,
      'other_branch',
      line,
      entries.map((entry) => ('text' in entry ? entry.text : '')).join(' '),
    );
  return entries.length > 0;
}

/** Most characters that are held: only the end of the file tells which branch is active. */
const MAX_HELD = 64 * 1024 * 1024;
/** What a record costs besides its text, in characters. */
const NODE = 256;

/** Adds up what is held of a tree. Throws `import_invalid` if it is too much. */
export function createHold(): (node: BranchNode, size: number) => void {
  let held = 0;
  return ({ entries, line }, size) => {
    held += NODE;
    for (const entry of entries) held += weightOf(entry, size);
    if (held <= MAX_HELD) return;
    throw new TroupeError(
      'import_invalid',
      `Up to line ${line} the session has more than 64 MiB of words, and its branches are known only at its end; begin the file at its last compaction.`,
      { line, limit: MAX_HELD },
    );
  };
}

function weightOf(entry: TranscriptEntry, size: number): number {
  if (entry.kind === 'said' || entry.kind === 'result' || entry.kind === 'summary') return entry.text.length;
  return size;
}
