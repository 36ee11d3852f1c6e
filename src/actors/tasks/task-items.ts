import type { ActorAddress, Event } from '../../events/index.ts';
import { heldTasks, openTasks, type Task, type TaskBook } from '../../machines/task-book.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';

/** Most tasks named in a live item; the others are counted. */
const MOST_NAMED = 12;
const MOST_TEXT = 80;
/** Newest events of a thread that are searched for the last words. */
const TAIL = 12;

/** The live items `delegations` and `todos`: open entries, one line each. Null: none. */
export async function openWorkItems(
  deps: Pick<EngineDeps, 'store'>,
  { tenant, agent }: ActorAddress,
  tasks: TaskBook,
): Promise<ReadonlyMap<string, string | null>> {
  const open = openTasks(tasks, agent);
  const lines = await Promise.all(
    open.slice(0, MOST_NAMED).map(async (task) => `- ${nameOf(task)}${await statusOf(deps, tenant, task)}`),
  );
  // Without its line, a task whose result is held back would seem never given.
  const held = heldTasks(tasks, agent).slice(0, MOST_NAMED);
  lines.push(...held.map((task) => `- ${nameOf(task)} (ended: you are told with the others)`));
  if (open.length > MOST_NAMED) lines.push(`- and ${open.length - MOST_NAMED} more`);
  const todos = tasks.todos.get(agent)?.items ?? [];
  const left = todos.filter(({ status }) => status === 'pending' || status === 'active');
  return new Map([
    ['delegations', lines.length > 0 ? `you wait for ${open.length}:\n${lines.join('\n')}` : null],
    ['todos', left.length > 0 ? left.map(({ text, status }) => `- [${status}] ${text}`).join('\n') : null],
  ]);
}

function nameOf(task: Task): string {
  switch (task.kind) {
    case 'delegation':
      return `${task.id} @${task.body.assignee}: ${clipped(task.body.task)}`;
    case 'question':
      return `${task.id} people: ${clipped(task.body.text)}`;
    case 'approval':
      return `${task.id} approval of ${task.body.tool}`;
  }
}

/** The last words of the assignee, in one line. */
async function statusOf(
  { store }: Pick<EngineDeps, 'store'>,
  tenant: ActorAddress['tenant'],
  task: Task,
): Promise<string> {
  if (task.kind !== 'delegation') return '';
  const log = { tenant, conversation: task.body.thread };
  const head = await store.head(log);
  if (head === 0) return ' (not begun)';
  const events = await store.read(log, { after: Math.max(0, head - TAIL), upTo: head, limit: TAIL });
  // The result is in the event that is about to arrive.
  if (events.some((event) => isEndOf(task.id, event))) return ' (ended: you are told next)';
  const words = events.findLast(
    (event) => event.author.id === task.body.assignee && (event.kind === 'message' || event.kind === 'step'),
  );
  const said = words?.kind === 'message' || words?.kind === 'step' ? clipped(words.body.content) : '';
  return said === '' ? ' (at work)' : ` (last: ${said})`;
}

function isEndOf(task: string, { kind, body }: Event): boolean {
  return (kind === 'delegation.completed' || kind === 'delegation.aborted') && body.delegation === task;
}

function clipped(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const points = Array.from(line.slice(0, 4 * MOST_TEXT));
  return points.length > MOST_TEXT ? `${points.slice(0, MOST_TEXT).join('')}…` : line;
}
