import { LRUCache } from 'lru-cache';
import { createView, forkView, type View } from '../../context/index.ts';
import { type ActorAddress, isErasure } from '../../events/index.ts';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { catchUpInSlices, type Folded, readPages, type ViewSource } from '../../actors/log/read-log.ts';
import { forkTaskFold, newTaskFold } from '../../machines/task-fold.ts';
import type { Store } from '../../store/store.ts';

type PastDeps = Pick<EngineDeps, 'store' | 'secretOf'> & {
  log: ViewSource;
  clock: Pick<EngineDeps['clock'], 'monotonic' | 'sleep'>;
};

/** Views of one agent at the prompts that were looked at, and the part of its log that is known to have no erasure. */
interface Past {
  views: Folded[];
  seq: number;
  /** Id of the event at `seq`, which is another one in a conversation that was deleted and begun again. */
  id: string | null;
}

/** Agents, and views of each. */
const MAX_AGENTS = 4;
const MAX_VIEWS = 4;
/** A larger view is not kept: a few of them would take much memory. */
const MAX_TOKENS = 1_000_000;
/** Whoever looks at one turn looks at those before it next: a view so many events before is kept, too. */
const BEFORE = 400;

const pasts = new WeakMap<Store, LRUCache<string, Past>>();

/**
 * The view of an agent after this seq, of which the caller may change everything. The log before is folded once: prompts of other turns
 * go on from the nearest view before them, unless words of the log were erased since.
 */
export async function viewAt(deps: PastDeps, address: ActorAddress, upTo: number): Promise<View> {
  const past = await pastOf(deps, address);
  const nearest = past.views.reduce<Folded | null>(
    (best, one) => (one.view.upTo <= upTo && one.view.upTo >= (best?.view.upTo ?? 0) ? one : best),
    null,
  );
  const folded = nearest ? forked(nearest) : newFolded(deps, address);
  if (upTo - folded.view.upTo > 2 * BEFORE) {
    await catchUpInSlices(deps, address, folded, upTo - BEFORE);
    keep(past, folded);
  }
  const isFar = upTo > folded.view.upTo;
  if (isFar) await catchUpInSlices(deps, address, folded, upTo);
  if (isFar) keep(past, folded);
  return folded.view;
}

function newFolded(deps: PastDeps, address: ActorAddress): Folded {
  return { view: createView(address.agent, deps.secretOf(address)), tasks: newTaskFold() };
}

const forked = ({ view, tasks }: Folded): Folded => ({ view: forkView(view), tasks: forkTaskFold(tasks) });

function keep(past: Past, folded: Folded): void {
  if (folded.view.tokens > MAX_TOKENS) return;
  past.views = [...past.views, forked(folded)].slice(-MAX_VIEWS);
}

/** What is kept of the agent, if its log is the same still. */
async function pastOf({ store }: PastDeps, address: ActorAddress): Promise<Past> {
  let kept = pasts.get(store);
  if (!kept) pasts.set(store, (kept = new LRUCache<string, Past>({ max: MAX_AGENTS })));
  const key = `${address.tenant}/${address.conversation}/${address.agent}`;
  const known = kept.get(key);
  if (known && (await isSame(store, address, known))) return known;
  const seq = await store.head(address);
  const [last] = await store.read(address, { after: Math.max(0, seq - 1), limit: 1 });
  const past = { views: [], seq, id: last?.id ?? null };
  kept.set(key, past);
  return past;
}

/** Reads on to the head of the log. False if words are gone since, or it is another log. */
async function isSame(store: Store, address: ActorAddress, past: Past): Promise<boolean> {
  let isFound = false;
  for await (const events of readPages(store, address, { after: Math.max(0, past.seq - 1) })) {
    for (const event of events) {
      if (event.seq === past.seq && event.id !== past.id) return false;
      if (event.seq > past.seq && isErasure(event)) return false;
      isFound = true;
      if (event.seq >= past.seq) [past.seq, past.id] = [event.seq, event.id];
    }
  }
  return isFound;
}
