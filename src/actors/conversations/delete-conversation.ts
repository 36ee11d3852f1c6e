import { TroupeError } from '../../base/errors.ts';
import {
  type ActorRecord,
  type DelegationOpenedBody,
  DEFAULT_TENANT,
  runtimeId,
  SYSTEM_AUTHOR,
  type EventDraft,
} from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import type { EngineDeps, Lifecycle } from '../actor/engine-deps.ts';
import { type PageSource, readPages } from '../log/read-log.ts';
import { readTasks, openedId } from '../log/tasks.ts';
import { type ParticipantsCache, participantsOf } from './messages.ts';

export interface Deleted {
  /** Number of conversations, threads included. */
  conversations: number;
  /** Number of events. */
  events: number;
  /** Number of actor records. */
  actors: number;
}

/**
 * Deletes a conversation with its threads. Threads are deleted first, so that after a crash the remaining events still name the
 * rest. `exported`: number of events that the caller has exported. Throws `command_refused` if it differs, if an agent is at
 * work, and for the thread of an open task, for whose end somebody waits.
 */
export async function deleteConversation(
  deps: Pick<EngineDeps, 'store' | 'clock' | 'log' | 'registry'>,
  root: ConversationKey,
  exported: number | 'none',
): Promise<Deleted> {
  const tree = await treeToDelete(deps, root);
  const count = tree.reduce((sum, { head }) => sum + head, 0);
  if (exported !== 'none' && exported !== count) {
    const message = `the conversation and its threads have ${count} events, but ${exported} were exported: export them again`;
    throw new TroupeError('command_refused', message, { events: count, exported });
  }
  return removeTree(deps, tree);
}

/** The conversation and its threads. Throws like `deleteConversation`. */
export async function treeToDelete(
  deps: Pick<EngineDeps, 'store' | 'clock'>,
  root: ConversationKey,
): Promise<Branch[]> {
  await refuseOpenThread(deps.store, root);
  return treeAtRest(deps, root);
}

/** Removes a tree in which no agent is at work. */
export async function removeTree(
  { store, log: events, registry }: Pick<EngineDeps, 'store' | 'log' | 'registry'>,
  tree: readonly Branch[],
): Promise<Deleted> {
  const deleted = { conversations: tree.length, events: 0, actors: 0 };
  for (const { log } of tree.toReversed()) {
    const actors = await store.listActors(log);
    const removed = await store.deleteConversation(log);
    deleted.events += removed.events;
    deleted.actors += removed.actors;
    events.forget(log);
    for (const each of actors) registry.drop('address' in each ? each.address : each);
  }
  return deleted;
}

async function refuseOpenThread(
  store: Pick<Store, 'readById'> & PageSource,
  root: ConversationKey,
): Promise<void> {
  const { fold } = await readTasks(store, root);
  for (const { delegation, home } of fold.thread?.open ?? []) {
    const { fold: above } = await readTasks(store, { ...root, conversation: home });
    if (above.tasks.get(delegation)?.end !== null) continue;
    const message = `${root.conversation} is the thread of the open task ${delegation}: cancel the task in ${home}, or delete ${home}`;
    throw new TroupeError('command_refused', message, { task: delegation, conversation: home });
  }
}

/** A turn whose end is already in the log releases its lease within this time, ms. */
const RELEASE_MS = 2_000;
/** Pause between two reads of the lease, ms. */
const LOOK_MS = 20;

/** Waits until no agent is at work in the tree, then returns it, with all threads opened until then. */
async function treeAtRest(
  deps: Pick<EngineDeps, 'store' | 'clock'>,
  root: ConversationKey,
): Promise<Branch[]> {
  const tree = await readTree(deps.store, root);
  let hasWaited = false;
  for (const { log } of tree) hasWaited = (await untilAtRest(deps, log)) || hasWaited;
  return hasWaited ? readTree(deps.store, root) : tree;
}

/** Waits until no agent is at work. Returns whether it had to wait. */
export async function untilAtRest(
  deps: Pick<EngineDeps, 'store' | 'clock'>,
  log: ConversationKey,
): Promise<boolean> {
  const { clock } = deps;
  const until = clock.monotonic() + RELEASE_MS;
  for (let hasWaited = false; ; hasWaited = true) {
    const busy = await busyIn(deps, log);
    if (!busy) return hasWaited;
    if (busy.turn !== null || clock.monotonic() >= until) {
      const message = `@${busy.agent} is at work in ${log.conversation}: wait for the end of its turn, or abort it`;
      throw new TroupeError('command_refused', message, {
        agent: busy.agent,
        conversation: log.conversation,
      });
    }
    await clock.sleep(LOOK_MS);
  }
}

/** A conversation or one of its threads. */
export interface Branch {
  log: ConversationKey;
  head: number;
}

/** A conversation and its threads, each thread after the conversation that opened it. */
export async function readTree(
  store: PageSource & Pick<Store, 'readById'>,
  root: ConversationKey,
): Promise<Branch[]> {
  const tree: Branch[] = [{ log: root, head: 0 }];
  const known = new Set<string>([root.conversation]);
  // The loop appends to the list over which it iterates.
  for (const branch of tree) {
    const { log } = branch;
    for await (const events of readPages(store, log, { after: 0 })) {
      for (const event of events) {
        if (event.kind !== 'delegation.opened' || known.has(event.body.thread)) continue;
        if (!(await isThreadOf(store, log, event.body))) continue;
        known.add(event.body.thread);
        tree.push({ log: { tenant: log.tenant, conversation: event.body.thread }, head: 0 });
      }
      branch.head = events.at(-1)?.seq ?? branch.head;
    }
  }
  return tree;
}

/** Whether a thread itself names the task that opened it, because an imported file may name any conversation as a thread. */
async function isThreadOf(
  store: Pick<Store, 'readById'>,
  { tenant, conversation }: ConversationKey,
  { delegation, thread }: DelegationOpenedBody,
): Promise<boolean> {
  const there = await store.readById({ tenant, conversation: thread }, openedId(delegation));
  return (
    there?.kind === 'delegation.opened' && there.body.home === conversation && there.body.thread === thread
  );
}

export async function atWork(
  deps: Pick<EngineDeps, 'store' | 'clock'>,
  log: ConversationKey,
): Promise<string | null> {
  return (await busyIn(deps, log))?.agent ?? null;
}

/** An agent at work in a conversation: it has a pinned turn, or a process holds its lease. Failed agents are not at work. */
async function busyIn(
  { store, clock }: Pick<EngineDeps, 'store' | 'clock'>,
  log: ConversationKey,
): Promise<ActorRecord | null> {
  const now = clock.now();
  const records = await store.listActors(log);
  const readable = records.filter((record): record is ActorRecord => !('address' in record));
  const busy = readable.find(
    ({ turn, owner, until, parked }) =>
      (turn !== null && parked !== 'failed') || (owner !== '' && until > now),
  );
  return busy ?? null;
}

const PAGE = 50;
const LIST_EVERY_MS = 600_000;
const MOST_LISTED = 1_000_000;

interface Quiet {
  log: ConversationKey;
  head: number;
  at: number;
}

/** Archives and deletes conversations without recent events, a page per round. Its state only saves repeated checks. */
export function createEndQuiet(
  deps: EngineDeps,
  participantsCache: ParticipantsCache,
  { archiveAfterMs = Infinity, deleteAfterMs = Infinity }: Lifecycle,
): () => Promise<void> {
  const { store, clock, log: events, tenants = async () => [DEFAULT_TENANT] } = deps;
  const shortest = Math.min(archiveAfterMs, deleteAfterMs);
  /** Heads of conversations that need no more checks: archived ones, and threads, which end with their root conversation. */
  const settled = new Map<string, number>();
  let queue: Quiet[] = [];
  let listAt = 0;

  return async function endQuiet() {
    const now = clock.now();
    if (shortest === Infinity) return;
    if (queue.length === 0 && now >= listAt) {
      listAt = now + Math.min(LIST_EVERY_MS, Math.ceil(shortest / 2));
      for (const tenant of await tenants()) queue.push(...(await quietOf(tenant, now - shortest)));
    }
    // Conversations with the newest events come first, so those without events for the longest time are at the end.
    for (const each of queue.splice(-PAGE)) await look(each, now);
  };

  async function quietOf(tenant: ConversationKey['tenant'], before: number): Promise<Quiet[]> {
    const all = await store.conversations(tenant, MOST_LISTED);
    return all.flatMap(({ id, head, at }) => {
      const log = { tenant, conversation: id };
      return at <= before && settled.get(quietKey(log)) !== head ? [{ log, head, at }] : [];
    });
  }

  async function look({ log, head, at }: Quiet, now: number): Promise<void> {
    const { tasks } = await participantsOf(events, log, deps.checkpoints);
    if (tasks.upTo !== head) return;
    if (tasks.thread) return void settled.set(quietKey(log), head);
    if (tasks.directions.archived) {
      if (deleteAfterMs === Infinity) settled.set(quietKey(log), head);
      else if (at <= now - deleteAfterMs) await remove(log);
      return;
    }
    if (at > now - archiveAfterMs || [...tasks.tasks.values()].some(({ end }) => end === null)) return;
    if ((await atWork(deps, log)) !== null) return;
    // The id is the same for one quiet period, so of two processes only one archives the conversation.
    const draft: EventDraft = {
      id: runtimeId('archived', head),
      author: SYSTEM_AUTHOR,
      to: [],
      kind: 'command',
      body: { command: 'archive', reason: 'nothing was said for long' },
    };
    await events.append(log, [draft]);
  }

  async function remove(log: ConversationKey): Promise<void> {
    try {
      await deleteConversation(deps, log, 'none');
      participantsCache.forget(log);
    } catch (error) {
      // An agent is at work, so a later round tries again.
      if (!(error instanceof TroupeError) || error.code !== 'command_refused') throw error;
    }
  }
}

function quietKey({ tenant, conversation }: ConversationKey): string {
  return `${tenant}/${conversation}`;
}
