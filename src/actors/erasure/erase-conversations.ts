import type { ConversationId, TenantId } from '../../events/index.ts';
import { placesOf } from '../../store/conversation-keys.ts';
import type { ConversationKey, KeyRange } from '../../store/store.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import { type Branch, removeTree, untilAtRest } from '../conversations/delete-conversation.ts';
import { readPages } from '../log/read-log.ts';
import { conversationsOf, type OnRead } from './survey.ts';

/** Counts of what an erasure has changed. */
export interface Erased {
  /** Conversations and threads in which words were erased, or that were deleted. */
  conversations: number;
  /** Events of which all or some words were erased. */
  events: number;
  /** Deleted files; in erasures of conversations and tenants also texts of prompts. */
  attachments: number;
  /** Outputs of tools, journals of turns, texts of prompts and notes, without those of deleted conversations. */
  entries: number;
  /** Sessions with vendors that the agents will not continue. */
  sessions: number;
}

export function emptyCount(): Erased {
  return { conversations: 0, events: 0, attachments: 0, entries: 0, sessions: 0 };
}

/**
 * Deletes conversations with their threads, and the texts and files that only they name. `delete` alone keeps these, because
 * other conversations may share them.
 *  C1  Texts and files are deleted first, so that after a crash the conversation still exists and can be erased again.
 *  C2  Texts and files that another conversation of the tenant names stay, and so do texts that agents are given in every
 *      conversation. A file that is sent again during its erasure may have to be sent once more.
 *  C3  Nothing is removed from a tree that may not be deleted, because an agent is at work in it or it is the thread of an open
 *      task.
 */
export async function eraseConversations(
  deps: ConversationErasureDeps & { treeOf: TreeToErase },
  tenant: TenantId,
  roots: readonly ConversationId[],
  onRead: OnRead = () => undefined,
): Promise<Erased> {
  const { within, named } = await namedIn(deps, tenant, roots, onRead);
  for await (const log of conversationsOf(deps.store, tenant)) {
    if (named.size === 0) break;
    if (within.has(log.conversation)) continue;
    onRead(log.conversation);
    await spareNamedIn(deps, log, named);
  }
  // Checked again, because reading the tenant takes time and new events may have arrived.
  const trees: Branch[][] = [];
  for (const conversation of roots) {
    const tree = (await deps.treeOf({ tenant, conversation })) ?? [];
    trees.push(tree);
    for (const { log } of tree) within.delete(log.conversation);
  }
  for (const log of within.values()) await spareNamedIn(deps, log, named);
  return removeAll(deps, { tenant, trees, named });
}

type Within = Map<ConversationId, ConversationKey>;

/** The conversations of the trees, and the hashes of texts and files that they name. */
async function namedIn(
  deps: ConversationErasureDeps & { treeOf: TreeToErase },
  tenant: TenantId,
  roots: readonly ConversationId[],
  onRead: OnRead,
): Promise<{ within: Within; named: Set<string> }> {
  const within: Within = new Map();
  const named = new Set<string>();
  for (const conversation of roots)
    for (const { log } of (await deps.treeOf({ tenant, conversation })) ?? []) {
      within.set(log.conversation, log);
      onRead(log.conversation);
      for await (const text of textsOf(deps, log)) for (const hash of hashesIn(text)) named.add(hash);
    }
  for (const hash of deps.spared) named.delete(hash);
  return { within, named };
}

async function removeAll(
  deps: ConversationErasureDeps,
  { tenant, trees, named }: { tenant: TenantId; trees: readonly Branch[][]; named: ReadonlySet<string> },
): Promise<Erased> {
  const erased = emptyCount();
  for (const key of named) {
    const entry = { tenant, namespace: 'body', key } as const;
    const [data] = await deps.store.entries.readEntries([entry]);
    if (typeof data !== 'string') continue;
    await deps.store.entries.removeEntries([entry]);
    erased.attachments += 1;
  }
  for (const tree of trees) {
    const deleted = await removeTree(deps, tree);
    erased.conversations += deleted.conversations;
    erased.events += deleted.events;
    for (const { log } of tree) deps.forget(log);
  }
  return erased;
}

export type ConversationErasureDeps = Pick<EngineDeps, 'store' | 'clock' | 'log' | 'registry'> & {
  /** Hashes of texts that stay in any case. */
  spared: ReadonlySet<string>;
  /** Called for each deleted conversation. */
  forget: (log: ConversationKey) => void;
};

/** Returns the tree to erase; null: it is skipped for now. Throws if the whole erasure is refused. */
type TreeToErase = (root: ConversationKey) => Promise<Branch[] | null>;

/** Hashes of `hashText` and of attachments. */
const HASH = /(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{64})(?![0-9a-f])/g;

function hashesIn(text: string): string[] {
  return text.match(HASH) ?? [];
}

/** The texts of a conversation that may name a body: its events, and the records of its prompts. */
async function* textsOf(
  { store }: Pick<ConversationErasureDeps, 'store'>,
  log: ConversationKey,
): AsyncGenerator<string> {
  for await (const events of readPages(store, log, { after: 0 }))
    for (const { body } of events) yield JSON.stringify(body);
  const { tenant, conversation } = log;
  for (const { namespace, after, before, isOwn } of placesOf(conversation)) {
    if (namespace !== 'prompt') continue;
    for await (const key of keysIn(store, { tenant, namespace, after, before })) {
      if (!isOwn(key)) continue;
      const [data] = await store.entries.readEntries([{ tenant, namespace, key }]);
      if (typeof data === 'string') yield data;
    }
  }
}

/** Removes the hashes that a remaining conversation names. */
async function spareNamedIn(
  deps: ConversationErasureDeps,
  log: ConversationKey,
  named: Set<string>,
): Promise<void> {
  for await (const text of textsOf(deps, log)) for (const hash of hashesIn(text)) named.delete(hash);
}

const KEYS = 100;

async function* keysIn(
  { entries }: ConversationErasureDeps['store'],
  range: Omit<KeyRange, 'limit'>,
): AsyncGenerator<string> {
  for (let { after } = range; ;) {
    const keys = await entries.entryKeys({ ...range, after, limit: KEYS });
    yield* keys;
    if (keys.length < KEYS) return;
    after = keys.at(-1) ?? after;
  }
}

const PROFILES = { after: 'person/', before: 'person0' };

/**
 * Erases everything that people and agents of a tenant have said: its conversations, texts, files and profiles. Keeps texts
 * that agents are given in every conversation, keys, webhooks, counts and receipts. Throws `command_refused` if an agent is at
 * work. Safe to repeat.
 */
export async function eraseTenant(
  deps: ConversationErasureDeps,
  tenant: TenantId,
  onRead: OnRead = () => undefined,
): Promise<Erased> {
  const erased = emptyCount();
  const all: ConversationKey[] = [];
  for await (const log of conversationsOf(deps.store, tenant)) all.push(log);
  for (const log of all) await untilAtRest(deps, log);
  for (const log of all) {
    onRead(log.conversation);
    const removed = await removeTree(deps, [{ log, head: 0 }]);
    erased.conversations += removed.conversations;
    erased.events += removed.events;
    deps.forget(log);
  }
  for await (const key of keysIn(deps.store, { tenant, namespace: 'body', after: '', before: '\uffff' })) {
    if (deps.spared.has(key)) continue;
    await deps.store.entries.removeEntries([{ tenant, namespace: 'body', key }]);
    erased.attachments += 1;
  }
  for await (const key of keysIn(deps.store, { tenant, namespace: 'note', ...PROFILES }))
    await deps.store.entries.removeEntries([{ tenant, namespace: 'note', key }]);
  return erased;
}
