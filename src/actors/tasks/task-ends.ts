import {
  type ConversationId,
  type Event,
  type TurnRefusal,
  isTaskEnd,
  type TaskPlace,
  type TenantId,
  agentAuthor,
  type DelegationOpenedBody,
  type EventDraft,
  type OutgoingEvent,
} from '../../events/index.ts';
import { isTaskOpen, type TaskFold, isResolved, openTasks, type Task } from '../../machines/task-fold.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { endId, cancellationOf, taskExcerpt } from '../log/tasks.ts';
import { TroupeError } from '../../base/errors.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import type { LiveActor } from '../actor/registry.ts';
import { type TurnRun, ownDraft } from '../attempt/turn-run.ts';
import { coversOf } from '../attempt/pinned-turn.ts';

/** The task of a thread and the tasks of which it is a part, the outermost first. Empty outside threads. */
export function placesOf({ thread }: Pick<TaskFold, 'thread'>): TaskPlace[] {
  if (!thread) return [];
  const { delegation, home, within = [] } = thread.opened;
  return [...within, { delegation, home }];
}

/**
 * Whether the work of a thread is cancelled, by its own task or by any task above it. The logs with the ends of the tasks
 * decide, so the answer is correct immediately and does not depend on events in the threads.
 *  C1  If a task above has ended with any outcome, the work is over, because a task that ends waits for no part.
 *  C2  If the thread's own last task has ended, its work is over only if it was cancelled: people may ask about a finished task.
 *  C3  Cancelling all work that follows from a message writes an entry beside the log of its conversation.
 *  C4  If the root conversation is deleted, all work that follows from it is over.
 */
export async function isThreadCancelled(
  store: Pick<Store, 'readById' | 'head' | 'get'>,
  tenant: TenantId,
  { thread }: Pick<TaskFold, 'thread'>,
): Promise<boolean> {
  if (!thread) return false;
  const { root, tree } = thread.opened;
  const [head, isNoted, ...ends] = await Promise.all([
    store.head({ tenant, conversation: root }),
    tree === undefined ? false : isTreeCancelled(store, tenant, root, tree),
    ...placesOf({ thread }).map(({ delegation, home }) =>
      store.readById({ tenant, conversation: home }, endId(delegation)),
    ),
  ]);
  const own = ends.pop() ?? null;
  const isAborted = own?.kind === 'delegation.ended' && own.body.outcome === 'cancelled';
  return head === 0 || isNoted || ends.some((end) => end !== null) || isAborted;
}

const MOST_ROUNDS = 20;

/**
 * Records that all work of a conversation up to the message `begun` is cancelled. The entry only moves forward. It is beside
 * the log, so that readers need not search the log for it.
 */
export async function recordCancellation(
  store: Pick<Store, 'get' | 'compareAndSet'>,
  { tenant, conversation }: ConversationKey,
  begun: string,
): Promise<void> {
  const key = cancellationKey(conversation);
  let noted = await store.get(tenant, key);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (noted !== null && isCovered(noted, begun)) return;
    const stored = await store.compareAndSet(tenant, key, noted, begun);
    if (stored === begun) return;
    noted = stored;
  }
  throw new TroupeError('store_unavailable', `${key} changes faster than it can be written; try again`);
}

/** Whether a tree was cancelled together with its whole conversation. */
async function isTreeCancelled(
  store: Pick<Store, 'get'>,
  tenant: TenantId,
  root: ConversationId,
  tree: string,
): Promise<boolean> {
  const noted = await store.get(tenant, cancellationKey(root));
  return noted !== null && isCovered(noted, tree);
}

function cancellationKey(root: ConversationId): string {
  return `calledoff/${root}`;
}

/** Compares seq and time, because a recreated conversation begins its seqs again, and clocks of processes differ. */
function isCovered(noted: string, tree: string): boolean {
  const [last, until] = partsOf(noted);
  const [seq, at] = partsOf(tree);
  return seq <= last && at <= until;
}

function partsOf(tree: string): [seq: number, at: number] {
  const [seq = '', at = ''] = tree.split('-');
  return [Number(seq) || 0, Number.parseInt(at, 36) || 0];
}

/** Value of `by` in the end of a turn whose task was cancelled. It is stored. */
export const CANCELLED = 'cancelled';

/** Whether a turn works on a cancelled task. A turn that answers a person continues. */
export async function isForCancelledTask({ deps, live, turn }: Pick<TurnRun, 'deps' | 'live' | 'turn'>) {
  if (live.tasks.thread === null || turn.byPerson) return false;
  return isThreadCancelled(deps.store, live.address.tenant, live.tasks);
}

/** Aborts all turns of this process that work on a task or a part of it at any depth, or in threads of a conversation. */
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
      // Everybody with access to the broadcast can send such a notice, so the log decides.
      if (await isThreadCancelled(deps.store, tenant, tasks)) lease.abort(turn.id);
    }),
  );
}

/** Why no model is asked about these inputs; null if one is. */
export function turnRefusal(
  { limits }: Pick<EngineDeps, 'limits'>,
  tasks: TaskFold,
  inputs: readonly Event[],
  isCancelled: boolean,
): TurnRefusal | null {
  const isOver = tasks.thread !== null && !isTaskOpen(tasks);
  // A later message of a person resets `off`.
  if (tasks.off) return { kind: 'task cancelled' };
  if (isCancelled && !inputs.some(isOfPeople)) return { kind: 'task cancelled' };
  if (isOver && inputs.every((event) => isOfTasks(event))) return { kind: 'task cancelled' };
  if (inputs.some((event) => event.author.kind === 'user')) return null;
  if (tasks.agentTurns < limits.maxAgentTurns) return null;
  return {
    kind: 'guard',
    guard: 'agent_turns',
    message: `agents took ${tasks.agentTurns} turns here since a person spoke (limits.maxAgentTurns ${limits.maxAgentTurns})`,
    goOn: 'a message of a person starts the count anew',
  };
}

/** Whether a person wrote the message. In a thread such messages are answered even if its task is over. */
export function isOfPeople(event: Event): boolean {
  return (event.author.kind === 'user' || event.kind === 'command') && !isOfTasks(event);
}

/** Whether an event is about a task. In a finished thread such events need no answer, because nobody would read it. */
function isOfTasks(event: Event): boolean {
  return event.kind === 'delegation.opened' || isTaskEnd(event);
}

type TaskOutcome = 'done' | 'failed' | 'cancelled';

/** Events about tasks in this and in other logs that the end of a turn causes. */
export interface TaskEnds {
  events: EventDraft[];
  outgoing: OutgoingEvent[];
}

/**
 * Ends tasks together with a turn. The answer of an assignee that waits for nothing is the result of its thread's open tasks.
 * A failed or aborted turn ends them too, with all tasks that were opened for them, so that no owner waits for ever.
 */
export function taskEnds(run: TurnRun): TaskEnds {
  const { live, ending, turn, runtime } = run;
  const { agent } = live.address;
  const own = (live.tasks.thread?.open ?? []).filter(({ assignee }) => assignee === agent);
  const rest = openTasks(live.tasks, agent);
  if (turn.refusal?.kind === 'task cancelled')
    return { events: [], outgoing: cancelAll(run, rest, 'what it was for has ended') };
  if (own.length === 0) {
    return {
      events: [],
      outgoing: cancelAll(run, rest.filter(isSuperseded(run)), 'another result was enough'),
    };
  }
  const superseded = rest.filter(isSuperseded(run));
  if (ending.kind === 'done') {
    const waits = rest.length - superseded.length + openedBy(run);
    const late = cancelAll(run, superseded, 'another result was enough');
    if (waits > 0 || run.isAddressedAgain) return { events: [], outgoing: late };
    const done = endOf(run, 'done', run.answer?.text ?? '');
    return { events: done.events, outgoing: [...done.outgoing, ...late] };
  }
  // The interrupting message is answered next. The task continues, or ends with that turn.
  if (ending.kind === 'aborted' && ending.by === 'interrupted')
    return { events: [], outgoing: cancelAll(run, superseded, 'another result was enough') };
  const why = ending.kind === 'failed' ? `${ending.code}: ${ending.message}` : `stopped by ${ending.by}`;
  const ended = endOf(run, ending.kind === 'failed' ? 'failed' : 'cancelled', why);
  return {
    events: ended.events,
    outgoing: [...ended.outgoing, ...cancelAll(run, rest, 'what it was for has ended')],
  };

  function endOf({ answer }: TurnRun, outcome: TaskOutcome, result: string): TaskEnds {
    const kind = 'delegation.ended' as const;
    const data = outcome === 'done' && answer && 'data' in answer ? { data: answer.data } : {};
    const bodyOf = ({ delegation, task }: DelegationOpenedBody) => ({
      delegation,
      outcome,
      result,
      task: taskExcerpt(task),
      ...data,
    });
    const told = runtime.watched && { told: 'results' as const };
    const by = { author: agentAuthor(runtime.profile), hop: turn.hop + 1 };
    return {
      events: own.map((opened) => ({
        ...ownDraft(run, `completed:${opened.delegation}`),
        kind,
        body: bodyOf(opened),
      })),
      outgoing: own.map((opened) => ({
        conversation: opened.home,
        draft: {
          id: endId(opened.delegation),
          ...by,
          to: [opened.delegator],
          kind,
          body: { ...bodyOf(opened), ...told },
        },
      })),
    };
  }
}

/** Returns a test of whether a task's group already has enough results, as with the joins `first` and `any`. */
export function isSuperseded({ live, turn }: TurnRun): (task: Task) => boolean {
  const given = new Set(coversOf(turn).map((seq) => live.tasks.ended.get(seq)?.group));
  return ({ group }) => given.has(group) || isResolved(live.tasks, group);
}

function cancelAll({ live, runtime }: TurnRun, tasks: readonly Task[], why: string): OutgoingEvent[] {
  return tasks.flatMap((task) => cancellationOf(live.address, task, agentAuthor(runtime.profile), why));
}

const OPENINGS: readonly EventDraft['kind'][] = ['delegation.opened', 'question', 'approval.requested'];

export function openedBy({ outputs }: TurnRun): number {
  return outputs.filter(({ kind }) => OPENINGS.includes(kind)).length;
}
