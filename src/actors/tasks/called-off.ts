import {
  type ConversationId,
  type Event,
  type Halt,
  isTaskEnd,
  type TaskPlace,
  type TenantId,
} from '../../events/index.ts';
import { isTaskOpen, type TaskBook } from '../../machines/task-book.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { endId } from './task-events.ts';
import { TroupeError } from '../../errors.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { LiveActor } from '../engine/registry.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/** The task of a thread and the tasks it is part of, the outermost first. Empty outside threads. */
export function placesOf({ thread }: Pick<TaskBook, 'thread'>): TaskPlace[] {
  if (!thread) return [];
  const { delegation, home, within = [] } = thread.opened;
  return [...within, { delegation, home }];
}

/**
 * Whether the work of a thread was called off, here or at any task above it. The logs that hold the ends decide, so the
 * answer holds at once and for good, whatever became of the events that notify the threads.
 *  C1  A part of a task that has ended, in whatever way, is over: a task that ends well waits for nothing.
 *  C2  The last task of a thread is over only if it was called off: people may ask more about a finished one.
 *  C3  Calling off everything that came of a message writes an entry beside the log of its conversation.
 *  C4  If the root conversation is deleted, everything that came of it is over.
 */
export async function isCalledOff(
  store: Pick<Store, 'readById' | 'head' | 'get'>,
  tenant: TenantId,
  { thread }: Pick<TaskBook, 'thread'>,
): Promise<boolean> {
  if (!thread) return false;
  const { root, tree } = thread.opened;
  const [head, isNoted, ...ends] = await Promise.all([
    store.head({ tenant, conversation: root }),
    tree === undefined ? false : isNotedOff(store, tenant, root, tree),
    ...placesOf({ thread }).map(({ delegation, home }) =>
      store.readById({ tenant, conversation: home }, endId(delegation)),
    ),
  ]);
  const own = ends.pop() ?? null;
  return head === 0 || isNoted || ends.some((end) => end !== null) || own?.kind === 'delegation.aborted';
}

/**
 * Up to which message all that came of a conversation was called off: one note that only moves forward. Beside the
 * conversation's log, since who asks knows neither its length nor which of its messages was the last.
 */
const MOST_ROUNDS = 20;

export async function noteCallOff(
  store: Pick<Store, 'get' | 'compareAndSet'>,
  { tenant, conversation }: ConversationKey,
  begun: string,
): Promise<void> {
  const key = callOffKey(conversation);
  let noted = await store.get(tenant, key);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (noted !== null && isCovered(noted, begun)) return;
    const stored = await store.compareAndSet(tenant, key, noted, begun);
    if (stored === begun) return;
    noted = stored;
  }
  throw new TroupeError('store_unavailable', `${key} changes faster than it can be written; try again`);
}

/** Whether what a tree is counted with was called off with all of its conversation. */
async function isNotedOff(
  store: Pick<Store, 'get'>,
  tenant: TenantId,
  root: ConversationId,
  tree: string,
): Promise<boolean> {
  const noted = await store.get(tenant, callOffKey(root));
  return noted !== null && isCovered(noted, tree);
}

function callOffKey(root: ConversationId): string {
  return `calledoff/${root}`;
}

/** By place and time: a conversation that was deleted and is there again counts anew, and clocks of processes differ. */
function isCovered(noted: string, tree: string): boolean {
  const [last, until] = partsOf(noted);
  const [seq, at] = partsOf(tree);
  return seq <= last && at <= until;
}

function partsOf(tree: string): [seq: number, at: number] {
  const [seq = '', at = ''] = tree.split('-');
  return [Number(seq) || 0, Number.parseInt(at, 36) || 0];
}

/** Author of the end of a turn whose task was called off above it. */
export const CALLED_OFF = 'called off';

/** Whether a turn works on something called off. A turn that answers a person goes on. */
export async function isTurnCalledOff({ deps, live, turn }: Pick<TurnRun, 'deps' | 'live' | 'turn'>) {
  if (live.tasks.thread === null || turn.byPerson) return false;
  return isCalledOff(deps.store, live.address.tenant, live.tasks);
}

/** Stops all turns of this process that work on a task or part of it, however deep, or below a conversation. */
export async function stopBelow(
  deps: Pick<EngineDeps, 'store' | 'registry'>,
  tenant: TenantId,
  task: string,
): Promise<void> {
  const isBelow = ({ address, tasks }: LiveActor) =>
    address.tenant === tenant &&
    (tasks.thread?.opened.root === task || placesOf(tasks).some(({ delegation }) => delegation === task));
  const below = deps.registry.working().filter(isBelow);
  await Promise.all(
    below.map(async ({ lease, tasks }) => {
      const turn = lease?.record.turn;
      if (!lease || !turn || turn.byPerson) return;
      // Anyone who reaches the broadcast may claim it; the log decides.
      if (await isCalledOff(deps.store, tenant, tasks)) lease.abort(turn.id);
    }),
  );
}

/** The reason not to ask a model about these inputs. Null: ask it. */
export function haltOf(
  { limits }: Pick<EngineDeps, 'limits'>,
  tasks: TaskBook,
  inputs: readonly Event[],
  calledOff: boolean,
): Halt | null {
  const isOver = tasks.thread !== null && !isTaskOpen(tasks);
  // A later message of a person resets `off`.
  if (tasks.off) return { kind: 'task aborted' };
  if (calledOff && !inputs.some(isOfPeople)) return { kind: 'task aborted' };
  if (isOver && inputs.every((event) => isOfTasks(event))) return { kind: 'task aborted' };
  if (inputs.some((event) => event.author.kind === 'user')) return null;
  if (tasks.agentTurns < limits.maxAgentTurns) return null;
  return {
    kind: 'guard',
    guard: 'agent_turns',
    message: `agents took ${tasks.agentTurns} turns here since a person spoke (limits.maxAgentTurns ${limits.maxAgentTurns})`,
    goOn: 'a message of a person starts the count anew',
  };
}

/** Messages of people in a thread are answered, whatever became of its task. */
export function isOfPeople(event: Event): boolean {
  return (event.author.kind === 'user' || event.kind === 'command') && !isOfTasks(event);
}

/** Events about tasks, which nobody wrote: in a finished thread nobody reads an answer to them. */
function isOfTasks(event: Event): boolean {
  return event.kind === 'delegation.opened' || isTaskEnd(event);
}
