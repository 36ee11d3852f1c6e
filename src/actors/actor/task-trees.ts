import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type ConversationId, type EventId, parseTurnId, type TenantId } from '../../events/index.ts';
import { slicesOf } from '../../base/slices.ts';
import type { Store } from '../../store/store.ts';
import { createEntries } from './shared-entries.ts';
import { endId } from '../log/tasks.ts';

/**
 * Counts the tasks that follow from one message, over all processes: one entry per tree in the store.
 *  T1  A task takes its place by compare-and-set before it is opened. So a tree never has more tasks than `maxTreeTasks`,
 *      or more open ones than `maxTreeOpen`, even if processes die.
 *  T2  A task takes only one place. A repeated attempt at its turn finds the place taken by the task itself.
 *  T3  Places need not be given back. If none is free, the logs are read to find tasks that have ended, or were never opened
 *      although their turn is over. Their places become free. The count is never below the number of open tasks.
 *  T4  A task that takes a place and is never opened still counts towards `maxTreeTasks`.
 */
export interface TaskTrees {
  /** Takes a place for a task. Throws `store_unavailable`, and `store_corrupt` for an unreadable entry. */
  take(tree: TreePlace, task: TreeTask): Promise<Taken>;
}

interface TreePlace {
  tenant: TenantId;
  root: ConversationId;
  /** Identifies the message within `root`. */
  tree: string;
}

interface TreeTask {
  id: string;
  /** Id of the event that opens it, in its owner's log: `<turn>:opened:<step>.<index>`. */
  opening: EventId;
  /** Whether another task is known to have ended. */
  isEnded: (task: string) => boolean;
}

type Taken = { ok: true } | { ok: false; of: 'made' | 'open'; made: number; open: number };

interface TreeLimits {
  maxTreeTasks: number;
  maxTreeOpen: number;
}

const Tree = z.strictObject({
  made: z.int().nonnegative(),
  /** Id of the opening event, by task. */
  open: z.record(z.string(), z.string()),
});
type Tree = z.infer<typeof Tree>;

/** How long a tree counts as full after a check that found no ended task, ms, because refused agents retry immediately. */
const LOOK_EVERY_MS = 1_000;
const LOOKED_AT_ONCE = 16;
const MOST_LOOKED_AT = 10_000;

const NEW_TREE: Tree = { made: 0, open: {} };

export function createTaskTrees(options: {
  store: Pick<Store, 'get' | 'compareAndSet' | 'readById' | 'head'>;
  clock: Clock;
  random: () => number;
  limits: TreeLimits;
}): TaskTrees {
  const { store, clock, random, limits } = options;
  const entries = createEntries({ store, clock, random, parse, onLost: () => undefined });

  const lookedAt = new Map<string, number>();

  /** The tasks of a full tree that have ended or will never be opened. */
  async function endedTasks(tenant: TenantId, { open }: Tree): Promise<Set<string>> {
    const all = Object.entries(open);
    const over = new Set<string>();
    for (let from = 0; from < all.length; from += LOOKED_AT_ONCE) {
      await slicesOf(clock).next();
      const some = all.slice(from, from + LOOKED_AT_ONCE);
      const ended = await Promise.all(some.map(([id, opening]) => isOver(tenant, id, opening)));
      for (const [index, [id]] of some.entries()) if (ended[index]) over.add(id);
    }
    return over;
  }

  async function isOver(tenant: TenantId, id: string, opening: string): Promise<boolean> {
    const turn = opening.slice(0, opening.lastIndexOf(':opened:'));
    const conversation = parseTurnId(turn)?.conversation;
    if (conversation === undefined) return true;
    const home = { tenant, conversation };
    if ((await store.readById(home, endId(id))) !== null) return true;
    // The end of the turn is read first, because a turn opens nothing after its end.
    const isEnded = (await store.readById(home, `${turn}:end`)) !== null;
    if (isEnded) return (await store.readById(home, opening)) === null;
    return (await store.head(home)) === 0;
  }

  async function take({ tenant, root, tree }: TreePlace, task: TreeTask): Promise<Taken> {
    const key = `tree/${root}/${tree}`;
    const attempt = (isEnded: TreeTask['isEnded']) =>
      entries.change(tenant, key, (state) => takePlace(state, { ...task, isEnded }, limits));
    const first = await attempt(task.isEnded);
    if (first.ok || first.of === 'made') return first;
    const now = clock.monotonic();
    const place = `${tenant}/${key}`;
    if (now - (lookedAt.get(place) ?? Number.NEGATIVE_INFINITY) < LOOK_EVERY_MS) return first;
    if (lookedAt.size >= MOST_LOOKED_AT) lookedAt.clear();
    lookedAt.set(place, now);
    const over = await endedTasks(tenant, await entries.look(tenant, key));
    return over.size === 0 ? first : attempt((id) => over.has(id) || task.isEnded(id));
  }

  return { take };
}

function takePlace(
  state: Tree,
  { id, opening, isEnded }: TreeTask,
  { maxTreeTasks, maxTreeOpen }: TreeLimits,
): { state: Tree; result: Taken } {
  if (Object.hasOwn(state.open, id)) return { state, result: { ok: true } };
  const left = Object.entries(state.open).filter(([each]) => !isEnded(each));
  const { made } = state;
  const open = left.length;
  if (made >= maxTreeTasks) return { state, result: { ok: false, of: 'made', made, open } };
  if (open >= maxTreeOpen) return { state, result: { ok: false, of: 'open', made, open } };
  const next = { made: made + 1, open: Object.fromEntries([...left, [id, opening]]) };
  return { state: next, result: { ok: true } };
}

function parse(text: string | null, key: string): Tree {
  if (text === null) return NEW_TREE;
  try {
    return Tree.parse(JSON.parse(text));
  } catch (cause) {
    const message = `the count ${key} cannot be read, so the number of tasks is unknown: repair it, or use a version that knows it`;
    throw new TroupeError('store_corrupt', message, { key }, { cause });
  }
}
