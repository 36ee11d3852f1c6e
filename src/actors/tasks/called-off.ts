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

/** The task of a thread and those that it is part of, the outermost first; empty where nothing was given. */
export function placesOf({ thread }: Pick<TaskBook, 'thread'>): TaskPlace[] {
  if (!thread) return [];
  const { delegation, home, within = [] } = thread.opened;
  return [...within, { delegation, home }];
}

/**
 * Whether what a thread works on was called off, here or anywhere above it. Asked of the log that each end stands in,
 * which is what was acknowledged: so it holds at once and for good, whatever became of the events that tell the threads.
 *  C1  One that is part of a task that has ended, however, is over: who ends well waits for nothing.
 *  C2  The last task of a thread is over here only where it was called off: people may ask more about one that is done.
 *  C3  Where all that came of one message was called off together, a note beside the log of that conversation says so.
 *  C4  Where the conversation that it all began in is gone, so is what came of it.
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

/** Who ends a turn whose task was called off above it. */
export const CALLED_OFF = 'called off';

/** Whether a turn under way works on what was called off. One that answers a person goes on. */
export async function isTurnCalledOff({ deps, live, turn }: Pick<TurnRun, 'deps' | 'live' | 'turn'>) {
  if (live.tasks.thread === null || turn.byPerson) return false;
  return isCalledOff(deps.store, live.address.tenant, live.tasks);
}

/** Breaks off all turns of this process that work on a task, or on a part of one, however deep; or below a conversation. */
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
      // Whoever reaches the channel may say so: what counts is the log.
      if (await isCalledOff(deps.store, tenant, tasks)) lease.abort(turn.id);
    }),
  );
}

/** Why no model is to be asked about these inputs; null if one is. */
export function haltOf(
  { limits }: Pick<EngineDeps, 'limits'>,
  tasks: TaskBook,
  inputs: readonly Event[],
  calledOff: boolean,
): Halt | null {
  const isOver = tasks.thread !== null && !isTaskOpen(tasks);
  // Also where it was a person who called it off.
  // Whoever speaks after it takes it back.
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

/** What people say in a thread is heard, whatever became of its task. */
export function isOfPeople(event: Event): boolean {
  return (event.author.kind === 'user' || event.kind === 'command') && !isOfTasks(event);
}

/** Nothing that anybody said: in a thread that is over nobody reads what an agent would make of it. */
function isOfTasks(event: Event): boolean {
  return event.kind === 'delegation.opened' || isTaskEnd(event);
}
