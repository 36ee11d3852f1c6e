import { isAbout } from '../events/aspects.ts';
import type { AgentId, Event } from '../events/index.ts';
import { MAX_ASKED, MAX_OPEN_TASKS, MAX_TASKS, type TaskView } from './model.ts';
import { type Draft, meetAgent, own } from './draft.ts';
import { oneLine } from './words.ts';

/** What agents wait for. A task is opened once and ended once: a later end changes nothing. */
export function foldTask(draft: Draft, event: Event): void {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return;
  switch (event.kind) {
    case 'delegation.opened': {
      const { delegation, task, assignee, thread } = event.body;
      // In its thread it is what the conversation is for, and nobody waits here.
      if (thread === event.conversation) return;
      return open(draft, event, {
        id: delegation,
        kind: 'delegation',
        text: oneLine(task),
        assignee,
        thread,
      });
    }
    case 'question': {
      const { question, text, choices = [] } = event.body;
      return open(draft, event, { id: question, kind: 'question', text: text.slice(0, MAX_ASKED), choices });
    }
    case 'approval.requested': {
      const { request, tool, args, argsHash } = event.body;
      const text = `${tool} ${args}`.slice(0, MAX_ASKED);
      return open(draft, event, { id: request, kind: 'approval', text, argsHash });
    }
    case 'delegation.completed':
    case 'delegation.aborted':
      return end(draft, event, event.body.delegation, event.body.outcome);
    case 'question.answered':
      return end(draft, event, event.body.question, event.body.outcome);
    case 'approval.decided':
      return end(draft, event, event.body.request, event.body.outcome);
  }
}

const NOTHING = { choices: [], argsHash: null, assignee: null, thread: null, outcome: null, endedAt: null };

function open(
  draft: Draft,
  event: Event,
  what: Pick<TaskView, 'id' | 'kind' | 'text'> & Partial<TaskView>,
): void {
  if (draft.next.tasks.some(({ id }) => id === what.id)) return;
  const { seq, at, author, context } = event;
  const tasks = own(draft, 'tasks');
  // Nobody here waits for what a file brought.
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

/** Drops the oldest of a sort while there are too many of it. */
function drop(tasks: TaskView[], isOne: (task: TaskView) => boolean, most: number): void {
  if (tasks.length <= most || tasks.filter(isOne).length <= most) return;
  tasks.splice(tasks.findIndex(isOne), 1);
}
