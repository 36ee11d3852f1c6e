import type { AgentId, Event } from '../../events/index.ts';
import { endOf, openingOf } from '../../machines/task-events.ts';
import { MAX_ASKED, MAX_OPEN_TASKS, MAX_TASKS, type TaskView } from './model.ts';
import { type Draft, meetAgent, own } from './draft.ts';
import { oneLine } from './words.ts';

/** Folds the tasks that agents wait for. Only the first opening and the first end of a task count. */
export function foldTask(draft: Draft, event: Event): void {
  const opening = openingOf(event);
  if (opening) return open(draft, event, viewOf(opening));
  const ending = endOf(event);
  if (ending) end(draft, event, ending.id, ending.outcome);
}

type Opened = Pick<TaskView, 'id' | 'kind' | 'text'> & Partial<TaskView>;

function viewOf(opening: NonNullable<ReturnType<typeof openingOf>>): Opened {
  const { id, kind, body } = opening;
  switch (kind) {
    case 'delegation':
      return { id, kind, text: oneLine(body.task), assignee: body.assignee, thread: body.thread };
    case 'question':
      return { id, kind, text: body.text.slice(0, MAX_ASKED), choices: body.choices ?? [] };
    case 'approval':
      return { id, kind, text: `${body.tool} ${body.args}`.slice(0, MAX_ASKED), argsHash: body.argsHash };
  }
}

const NOTHING = { choices: [], argsHash: null, assignee: null, thread: null, outcome: null, endedAt: null };

function open(draft: Draft, event: Event, what: Opened): void {
  if (draft.next.tasks.some(({ id }) => id === what.id)) return;
  const { seq, at, author, context } = event;
  const tasks = own(draft, 'tasks');
  // An imported task is over: no agent waits for it.
  const past = context?.imported ? { outcome: 'imported', endedAt: at } : {};
  tasks.push({ ...NOTHING, owner: author.id as AgentId, seq, at, ...what, ...past });
  meetAgent(draft, author.id, event);
  drop(tasks, (task) => task.endedAt === null, MAX_OPEN_TASKS);
}

function end(draft: Draft, event: Event, id: string, outcome: string): void {
  const index = draft.next.tasks.findLastIndex((task) => task.id === id);
  const task = draft.next.tasks[index];
  if (!task || task.endedAt !== null) return;
  const tasks = own(draft, 'tasks');
  tasks[index] = { ...task, outcome, endedAt: event.at };
  meetAgent(draft, task.owner, event);
  drop(tasks, ({ endedAt }) => endedAt !== null, MAX_TASKS);
}

/** Drops the oldest task of a kind when there are too many. */
function drop(tasks: TaskView[], isOne: (task: TaskView) => boolean, most: number): void {
  if (tasks.length <= most || tasks.filter(isOne).length <= most) return;
  tasks.splice(tasks.findIndex(isOne), 1);
}
