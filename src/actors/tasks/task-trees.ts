import * as z from 'zod';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { type ConversationId, type EventId, parseTurnId, type TenantId } from '../../events/index.ts';
import { slicesOf } from '../../slices.ts';
import type { Store } from '../../store/store.ts';
import { createEntries } from '../budget/entries.ts';
import { endId } from './task-events.ts';

/**
 * How many tasks come of one message, over all processes: a register per tree in the store.
 *  T1  A task takes its place before it can be opened, by compare-and-set. So of one tree no more are ever made than
 *      `maxTreeTasks`, and no more are open at once than `maxTreeOpen`, whoever dies when.
 *  T2  The same task again takes no second place: an attempt at its turn that is repeated finds its own.
 *  T3  Nobody has to give a place back. When none is left, the logs say which tasks have ended, or were never opened
 *      though their turn is over: those give way. What is held is never less than what is open.
 *  T4  A task that takes its place and is not opened counts as made.
 */
export interface TaskTrees {
  /** Throws `store_unavailable`; `store_corrupt` for a register that cannot be read. */
  take(tree: TreePlace, task: TreeTask): Promise<Taken>;
}

export interface TreePlace {
  tenant: TenantId;
  root: ConversationId;
  /** Of `root`: what it was that a person said. */
  tree: string;
}

export interface TreeTask {
  id: string;
  /** Of the event that would open it, in the log of its owner: `<turn>:opened:<step>.<index>`. */
  opening: EventId;
  /** Of another task: whether it is known to have ended. */
  isEnded: (task: string) => boolean;
}

export type Taken = { ok: true } | { ok: false; of: 'made' | 'open'; made: number; open: number };

export interface TreeLimits {
  maxTreeTasks: number;
  maxTreeOpen: number;
}

const Tree = z.strictObject({
  made: z.int().nonnegative(),
  /** By task: the event that opens it. */
  open: z.record(z.string(), z.string()),
});
type Tree = z.infer<typeof Tree>;

/** How long a tree in which nothing had ended is taken for full: who is refused asks again at once. */
const LOOK_EVERY_MS = 1_000;
/** Tasks whose logs are asked in one slice. */
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
  const registers = createEntries({ store, clock, random, parse, onLost: () => undefined });

  const lookedAt = new Map<string, number>();

  /** Those of a full tree that have ended, or never will begin. */
  async function overdue(tenant: TenantId, { open }: Tree): Promise<Set<string>> {
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
    // In this order: a turn that has ended opens nothing after its end.
    const isEnded = (await store.readById(home, `${turn}:end`)) !== null;
    if (isEnded) return (await store.readById(home, opening)) === null;
    return (await store.head(home)) === 0;
  }

  async function take({ tenant, root, tree }: TreePlace, task: TreeTask): Promise<Taken> {
    const key = `tree/${root}/${tree}`;
    const attempt = (isEnded: TreeTask['isEnded']) =>
      registers.change(tenant, key, (state) => placed(state, { ...task, isEnded }, limits));
    const first = await attempt(task.isEnded);
    if (first.ok || first.of === 'made') return first;
    const now = clock.monotonic();
    const place = `${tenant}/${key}`;
    if (now - (lookedAt.get(place) ?? Number.NEGATIVE_INFINITY) < LOOK_EVERY_MS) return first;
    if (lookedAt.size >= MOST_LOOKED_AT) lookedAt.clear();
    lookedAt.set(place, now);
    const over = await overdue(tenant, await registers.look(tenant, key));
    return over.size === 0 ? first : attempt((id) => over.has(id) || task.isEnded(id));
  }

  return { take };
}

function placed(
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
    const message = `the count ${key} cannot be read, so nobody knows how many tasks there are: repair it, or use a version that knows it`;
    throw new TroupeError('store_corrupt', message, { key }, { cause });
  }
}
