import { createHash } from 'node:crypto';
import type { Principal } from './principal.ts';

/** The thread of a task is called `<stem of its root>.d-<digits>`, and a stem is the root unless that is long. */
const THREAD = /^(.+)\.d-[0-9a-f]{12}$/;
const LONGEST_STEM = 100;
const STEM_KEPT = LONGEST_STEM - 9;
const LOOKS_CUT = /^.{91}\.[0-9a-f]{8}$/;

/** Whether somebody may know of a conversation. A thread is granted with its root, and never by itself. */
export function isGranted(
  { conversations }: Pick<Principal, 'conversations'>,
  conversation: string,
): boolean {
  if (conversations === null) return true;
  const [, stem] = THREAD.exec(conversation) ?? [];
  if (stem === undefined) return conversations.some((pattern) => matches(pattern, conversation));
  return conversations.some((pattern) => matchesStem(pattern, stem));
}

/** Whether all that a pattern stands for is granted. */
export function covers({ conversations }: Pick<Principal, 'conversations'>, pattern: string): boolean {
  if (conversations === null) return true;
  const beginning = beginningOf(pattern);
  if (beginning === null) return isGranted({ conversations }, pattern);
  return conversations.some((each) => {
    const own = beginningOf(each);
    return own !== null && beginning.startsWith(own);
  });
}

/** Where all that these stand for is, threads included. What is there need not be granted: `isGranted` says. */
export function rangesOf(patterns: readonly string[]): { from: string; to: string }[] {
  const all = patterns.flatMap((pattern) => {
    const beginning = beginningOf(pattern);
    if (beginning !== null) return [withBeginning(beginning)];
    // Before all that ids are made of: so only the id itself is in it.
    return [{ from: pattern, to: `${pattern}!` }, withBeginning(`${stemOf(pattern)}.d-`)];
  });
  const apart: { from: string; to: string }[] = [];
  for (const range of all.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = apart.at(-1);
    if (!last || range.from > last.to) apart.push(range);
    else if (range.to > last.to) last.to = range.to;
  }
  return apart;
}

/** Ids are ASCII: none goes beyond the tilde. */
function withBeginning(beginning: string): { from: string; to: string } {
  return { from: beginning, to: `${beginning}~` };
}

function matches(pattern: string, conversation: string): boolean {
  const beginning = beginningOf(pattern);
  return beginning === null ? conversation === pattern : conversation.startsWith(beginning);
}

/** Of a long root the end is hashed: a beginning that reaches into it cannot be told from another, and grants nothing. */
function matchesStem(pattern: string, stem: string): boolean {
  const beginning = beginningOf(pattern);
  // An id that looks like the stem of a long one might have been chosen for that.
  if (beginning === null) return stem === stemOf(pattern) && !LOOKS_CUT.test(pattern);
  const isCut = stem.length === LONGEST_STEM;
  return stem.startsWith(beginning) && !(isCut && beginning.length > STEM_KEPT);
}

function stemOf(root: string): string {
  if (root.length <= LONGEST_STEM) return root;
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 8);
  return `${root.slice(0, STEM_KEPT)}.${hash}`;
}

/** Null for a pattern that is an id. */
function beginningOf(pattern: string): string | null {
  return pattern.endsWith('*') ? pattern.slice(0, -1) : null;
}
