import { TroupeError } from '../../errors.ts';
import { type ActorRecord, type Author, type CommandOf, type Event, runtimeId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { abortTask, sendOutgoing } from './task-events.ts';
import { endByPerson, type PersonDeps, taskForPerson } from './person-task.ts';
import { appendFirst } from '../conversations/conversation-deps.ts';
import { requirePerson } from '../conversations/trust.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { readTasks } from './read-tasks.ts';
import { noteCallOff, stopBelow } from './called-off.ts';

/**
 * A person ends what an agent waits for. Whoever works on it is broken off by the event in the thread; what it has given
 * to others in turn, its own halted turn calls off.
 */
export async function cancelTaskBy(
  deps: CallOffDeps,
  log: ConversationKey,
  { task: named, reason }: Pick<CommandOf<'cancelTask'>, 'task' | 'reason'>,
  by: Author,
): Promise<Event> {
  const why = reason?.trim() || `${by.name} called it off`;
  if (named.trim() === ALL_TASKS) return callOffAll(deps, log, why, by);
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

export type CallOffDeps = PersonDeps &
  Pick<EngineDeps, 'metrics' | 'registry' | 'broadcast' | 'router' | 'onWarning'>;

/** Instead of a task: all that came of what was said in a conversation. */
const ALL_TASKS = 'all';

/**
 * Ends all that goes on in a conversation and came of it, until a person speaks again. Safe to repeat; in this order, so
 * that nothing begins that a later step does not see:
 *  A1  A note tells all threads of it, whatever they are part of.
 *  A2  An event in the log: the conversation's own agents are asked nothing more about what was said before.
 *  A3  The turns under way are asked to stop, and after that none of them says or opens anything.
 *  A4  The open tasks are ended, as by a person who calls each of them off.
 */
async function callOffAll(
  deps: CallOffDeps,
  log: ConversationKey,
  reason: string,
  by: Author,
): Promise<Event> {
  const { store, broadcast } = deps;
  const { tenant, conversation } = log;
  requirePerson(deps.trust ?? null, by, 'call off tasks');
  const { book: before } = await readTasks(store, log);
  if (before.thread) {
    const { delegation, home } = before.thread.opened;
    const message = `${conversation} is the thread of ${delegation}: call that off in ${home}`;
    throw new TroupeError('command_refused', message, { task: delegation, conversation: home });
  }
  await noteCallOff(store, log, before.begun);
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
  const { book } = await readTasks(store, log);
  const open = [...book.open].flatMap((task) => book.tasks.get(task) ?? []);
  await sendOutgoing(
    deps,
    tenant,
    open.flatMap((task) => abortTask(log, task, by, reason)),
  );
  return event;
}

async function stopTurns(
  { store, registry, broadcast, router, onWarning }: CallOffDeps,
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
    // Nobody may be holding it. A wake that is lost is the sweeper's.
    await router.wake(address).catch((error: unknown) => onWarning(error, 'wake'));
  }
}
