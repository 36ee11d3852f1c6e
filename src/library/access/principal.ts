import * as z from 'zod';
import { type Author, DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import { createHash } from 'node:crypto';

/**
 * Rights of a caller. No scope includes another: a caller with `write` alone cannot read.
 *  - `read`: read and follow conversations.
 *  - `write`: send messages, answer, approve, cancel tasks; with `operate`, import.
 *  - `operate`: all other commands, deleting, and messages of agents and of the system.
 *  - `admin`: keys, webhooks, metrics.
 */
export const SCOPES = ['read', 'write', 'operate', 'admin'] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** A caller and its rights. */
export interface Principal {
  /** `key:<id>`, `jwt:<subject>`, `server-token`, `local`. */
  id: string;
  /** Id of the tenant. */
  tenant: TenantId;
  /** Its rights. */
  scopes: readonly Scope[];
  /** The only author it may write as; null: each event names its author. */
  author: Author | null;
  /** Conversations it may see and write: ids, or prefixes that end with `*`; null: all of its tenant. */
  conversations: readonly string[] | null;
}

/** A caller without a credential: a process on this machine, or an application that checks its own callers. */
export const LOCAL: Principal = {
  id: 'local',
  tenant: DEFAULT_TENANT,
  scopes: SCOPES,
  author: null,
  conversations: null,
};
export const SERVER_TOKEN: Principal = { ...LOCAL, id: 'server-token' };

const MAX_PATTERNS = 64;
/** The id of a conversation, or a prefix of ids that ends with `*`. */
const ConversationPattern = z
  .string()
  .regex(
    /^(?:[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}\*?|\*)$/,
    "a conversation is an id, or a prefix of ids that ends with '*'",
  );
export const ConversationPatterns = z.array(ConversationPattern).max(MAX_PATTERNS);

/** The thread of a task is named `<stem of its root>.d-<digits>`. The stem is the root, shortened if it is long. */
const THREAD = /^(.+)\.d-[0-9a-f]{12}$/;
const LONGEST_STEM = 100;
const STEM_KEPT = LONGEST_STEM - 9;
const LOOKS_CUT = /^.{91}\.[0-9a-f]{8}$/;

/** Whether the caller was granted a conversation. A thread is granted with its root, and never by itself. */
export function isGranted(
  { conversations }: Pick<Principal, 'conversations'>,
  conversation: string,
): boolean {
  if (conversations === null) return true;
  const [, stem] = THREAD.exec(conversation) ?? [];
  if (stem === undefined) return conversations.some((pattern) => matches(pattern, conversation));
  return conversations.some((pattern) => matchesStem(pattern, stem));
}

/** Whether a conversation is a thread of another one, or of the root that both are threads of. */
export function isThreadOf(thread: string, conversation: string): boolean {
  const [, stem] = THREAD.exec(thread) ?? [];
  const [, own] = THREAD.exec(conversation) ?? [];
  return stem !== undefined && thread !== conversation && stem === (own ?? stemOf(conversation));
}

/** Whether every id that matches a pattern is granted. */
export function covers({ conversations }: Pick<Principal, 'conversations'>, pattern: string): boolean {
  if (conversations === null) return true;
  const beginning = beginningOf(pattern);
  if (beginning === null) return isGranted({ conversations }, pattern);
  return conversations.some((each) => {
    const own = beginningOf(each);
    return own !== null && beginning.startsWith(own);
  });
}

/** Ranges of ids that contain all matches, threads included. They may also contain ids that `isGranted` refuses. */
export function rangesOf(patterns: readonly string[]): { from: string; to: string }[] {
  const all = patterns.flatMap((pattern) => {
    const beginning = beginningOf(pattern);
    if (beginning !== null) return [withBeginning(beginning)];
    // `!` sorts before all characters of ids, so the range contains only the id itself.
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

/** Ids are ASCII without `~`, so none sorts after it. */
function withBeginning(beginning: string): { from: string; to: string } {
  return { from: beginning, to: `${beginning}~` };
}

function matches(pattern: string, conversation: string): boolean {
  const beginning = beginningOf(pattern);
  return beginning === null ? conversation === pattern : conversation.startsWith(beginning);
}

/** The end of a long root is hashed. A prefix that reaches into the hash grants nothing. */
function matchesStem(pattern: string, stem: string): boolean {
  const beginning = beginningOf(pattern);
  // A caller may have chosen an id that looks like the stem of a long one.
  if (beginning === null) return stem === stemOf(pattern) && !LOOKS_CUT.test(pattern);
  return stem.startsWith(beginning) && !(LOOKS_CUT.test(stem) && beginning.length > STEM_KEPT);
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
