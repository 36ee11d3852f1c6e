import { TroupeError } from '../../base/errors.ts';
import type { ActorRecord, DelegationOpenedBody } from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { type PageSource, readPages } from '../log/read-pages.ts';
import { readTasks } from '../tasks/read-tasks.ts';
import { openedId } from '../tasks/task-events.ts';

export interface Deleted {
  /** Number of conversations, threads included. */
  conversations: number;
  /** Number of events. */
  events: number;
  /** Number of actor records. */
  actors: number;
}

/**
 * Deletes a conversation with its threads, the threads first: after a crash the remaining events still name the rest.
 * `exported`: number of events that the caller has exported. Refused if it differs, if an agent is at work, and for the
 * thread of an open task, whose end somebody awaits.
 */
export async function deleteConversation(
  deps: Pick<EngineDeps, 'store' | 'clock' | 'log' | 'registry'>,
  root: ConversationKey,
  exported: number | 'none',
): Promise<Deleted> {
  const { store, log: events, registry } = deps;
  await refuseOpenThread(store, root);
  const tree = await treeAtRest(deps, root);
  const count = tree.reduce((sum, { head }) => sum + head, 0);
  if (exported !== 'none' && exported !== count) {
    const message = `the conversation and its threads have ${count} events, but ${exported} were exported: export them again`;
    throw new TroupeError('command_refused', message, { events: count, exported });
  }
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
  const { book } = await readTasks(store, root);
  for (const { delegation, home } of book.thread?.open ?? []) {
    const { book: above } = await readTasks(store, { ...root, conversation: home });
    if (above.tasks.get(delegation)?.end !== null) continue;
    const message = `${root.conversation} is the thread of the open task ${delegation}: cancel the task in ${home}, or delete ${home}`;
    throw new TroupeError('command_refused', message, { task: delegation, conversation: home });
  }
}

/** A turn whose end can be read gives its lease back within this time, ms. */
const RELEASE_MS = 2_000;
/** Pause between looks at the lease, ms. */
const LOOK_MS = 20;

/** The tree once no agent is at work in it: what a turn has written until then is part of it. */
async function treeAtRest(
  deps: Pick<EngineDeps, 'store' | 'clock'>,
  root: ConversationKey,
): Promise<Branch[]> {
  const tree = await readTree(deps.store, root);
  let hasWaited = false;
  for (const { log } of tree) hasWaited = (await untilAtRest(deps, log)) || hasWaited;
  return hasWaited ? readTree(deps.store, root) : tree;
}

/** Whether a lease had to be waited for. */
async function untilAtRest(
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
  // The loop appends to the list it walks.
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

/** Whether a thread confirms the opening that names it: an imported file may name any conversation. */
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

/** An agent at work in a conversation: it has a turn under way, or a process holds its lease. Failed agents are not at work. */
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
