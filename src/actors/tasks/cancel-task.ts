import { TroupeError } from '../../base/errors.ts';
import { type ActorRecord, type Author, type CommandOf, type Event, runtimeId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { abortTask, sendOutgoing } from './task-events.ts';
import { endByPerson, type PersonDeps, taskForPerson } from './person-task.ts';
import { appendFirst } from '../conversations/conversation-deps.ts';
import { requirePerson } from '../conversations/trust.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { readTasks } from './read-tasks.ts';
import { recordCancellation, stopBelow } from './cancellation.ts';

/**
 * Cancels a task for a person. The event in its thread stops the assignee, whose halted turn cancels the tasks it has
 * delegated itself.
 */
export async function cancelTaskBy(
  deps: CancelDeps,
  log: ConversationKey,
  { task: named, reason }: Pick<CommandOf<'cancelTask'>, 'task' | 'reason'>,
  by: Author,
): Promise<Event> {
  const why = reason?.trim() || `${by.name} called it off`;
  if (named.trim() === ALL_TASKS) return cancelAll(deps, log, why, by);
  const attempt = { log, by, command: 'cancelTask', task: named, said: why } as const;
  const found = await taskForPerson(deps, ['delegation', 'question', 'approval'], attempt);
  const { task } = found;
  const [first, ...rest] = abortTask(found.log, task, by, why);
  if (!first) throw new TroupeError('internal', `nothing ends ${task.id}`);
  const { draft } = first;
  const end = await endByPerson(deps, { ...attempt, log: found.log, task: task.id }, draft, (event) =>
    isSame(event, draft),
  );
  await sendOutgoing(deps, log.tenant, rest);
  return end;
}

function isSame(event: Pick<Event, 'kind' | 'body'>, draft: Pick<Event, 'kind' | 'body'>): boolean {
  return event.kind === draft.kind && JSON.stringify(event.body) === JSON.stringify(draft.body);
}

export type CancelDeps = PersonDeps &
  Pick<EngineDeps, 'metrics' | 'registry' | 'broadcast' | 'router' | 'onWarning'>;

/** Names all tasks of a conversation instead of one. */
const ALL_TASKS = 'all';

/**
 * Ends all work in a conversation and below it, until a person speaks again. Safe to repeat. The order makes every step see
 * what began before it:
 *  A1  An entry notifies all threads, however deep.
 *  A2  An event in the log: agents of the conversation are no longer asked about earlier messages.
 *  A3  Turns under way are asked to stop. After that none of them writes or opens anything.
 *  A4  The open tasks are ended, as if a person cancelled each of them.
 */
async function cancelAll(deps: CancelDeps, log: ConversationKey, reason: string, by: Author): Promise<Event> {
  const { store, broadcast } = deps;
  const { tenant, conversation } = log;
  requirePerson(deps.trust ?? null, by, 'cancel tasks');
  const { book: before } = await readTasks(store, log, deps.checkpoints);
  if (before.thread) {
    const { delegation, home } = before.thread.opened;
    const message = `${conversation} is the thread of ${delegation}: cancel that in ${home}`;
    throw new TroupeError('command_refused', message, { task: delegation, conversation: home });
  }
  await recordCancellation(store, log, before.begun);
  const id = runtimeId('calledoff', before.begun || 'none');
  const event = await appendFirst(deps, log, {
    id,
    author: by,
    to: [],
    kind: 'command',
    body: { command: 'cancelTask' },
  });
  broadcast.publish({ type: 'called off', tenant, task: conversation });
  await stopBelow(deps, tenant, conversation);
  await stopTurns(deps, log);
  const { book } = await readTasks(store, log, deps.checkpoints);
  const open = [...book.open].flatMap((task) => book.tasks.get(task) ?? []);
  await sendOutgoing(
    deps,
    tenant,
    open.flatMap((task) => abortTask(log, task, by, reason)),
  );
  return event;
}

async function stopTurns(
  { store, registry, broadcast, router, onWarning }: CancelDeps,
  log: ConversationKey,
): Promise<void> {
  const records = await store.listActors(log);
  const working = records.filter(
    (record): record is ActorRecord => 'fence' in record && record.turn !== null,
  );
  for (const { tenant, conversation, agent, turn } of working) {
    const address = { tenant, conversation, agent };
    if (!turn || !(await store.requestCancel(address, turn.id))) continue;
    registry.find(address)?.lease?.abort(turn.id);
    broadcast.publish({ type: 'stop', address, turn: turn.id });
    // No process may hold the turn. The sweeper makes up for a lost wake.
    await router.wake(address).catch((error: unknown) => onWarning(error, 'wake'));
  }
}
