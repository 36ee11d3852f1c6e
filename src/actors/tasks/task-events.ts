import {
  type AgentId,
  type Author,
  ConversationId,
  MAX_TASK_EXCERPT,
  type EventId,
  type OutgoingEvent,
  runtimeId,
  type TenantId,
  type TurnId,
} from '../../events/index.ts';
import type { Task } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import { capped, hashText } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { ConversationLog } from '../log/conversation-log.ts';

/** A task has one end: the id is fixed, so the first writer ends it. */
export function endId(task: string): EventId {
  return runtimeId(task, 'end');
}

/** Id of the opening event in the thread. */
export function openedId(delegation: string): EventId {
  return runtimeId(delegation, 'opened');
}

/** The beginning of a task on one line, for its result: whoever gave it may no longer have it in its prompt. */
export function taskExcerpt(task: string): string {
  const line = task
    .slice(0, 4 * MAX_TASK_EXCERPT)
    .replace(/\s+/g, ' ')
    .trim();
  return capped(line, MAX_TASK_EXCERPT);
}

/** The events that end a task from above or at its deadline: one for its owner, and one that stops the assignee. */
export function abortTask(
  { conversation }: Pick<ConversationKey, 'conversation'>,
  task: Task,
  by: Author,
  why: string,
): OutgoingEvent[] {
  const id = endId(task.id);
  const to = [task.owner];
  switch (task.kind) {
    case 'delegation': {
      const { thread, assignee, task: words } = task.body;
      const body = {
        delegation: task.id,
        outcome: 'aborted' as const,
        result: why,
        task: taskExcerpt(words),
      };
      const kind = 'delegation.aborted' as const;
      return [
        { conversation, draft: { id, author: by, to, kind, body } },
        {
          conversation: thread,
          draft: { id: runtimeId(task.id, 'abort'), author: by, to: [assignee], kind, body },
        },
      ];
    }
    case 'question': {
      const body = { question: task.id, outcome: endedBy(by), content: why };
      return [{ conversation, draft: { id, author: by, to, kind: 'question.answered', body } }];
    }
    case 'approval': {
      const body = { request: task.id, outcome: endedBy(by), note: why };
      return [{ conversation, draft: { id, author: by, to, kind: 'approval.decided', body } }];
    }
  }
}

/** A task that is being opened, for its deadline timer. */
export function opening(opened: Pick<Task, 'kind' | 'body' | 'id'>, owner: AgentId): Task {
  return { ...opened, owner, group: opened.id, seq: 0, at: 0, end: null } as Task;
}

function endedBy(by: Author): 'expired' | 'withdrawn' {
  return by.kind === 'system' ? 'expired' : 'withdrawn';
}

const ID_DIGITS = 12;
/** Most characters of a root id in a thread id; the rest is for the task. */
const MOST_ROOT = 100;

/** The id of a task is the same in every attempt at a turn, so a repeated call opens the same task. */
export function taskIdOf(
  kind: 'd' | 'q' | 'a',
  turn: TurnId,
  { step, index }: { step: number; index: number },
): string {
  return `${kind}-${hashText(`${turn}/${step}.${index}`).slice(0, ID_DIGITS)}`;
}

/** Id of a task's thread, named after the root conversation, however deep the task is. */
export function threadOf(root: ConversationId, task: string): ConversationId {
  const stem =
    root.length <= MOST_ROOT ? root : `${root.slice(0, MOST_ROOT - 9)}.${hashText(root).slice(0, 8)}`;
  return ConversationId.parse(`${stem}.${task}`);
}

/**
 * Appends outgoing events to their logs, in order per log. Safe to repeat. An existing event with the same id counts instead,
 * because the task has ended already.
 */
export async function sendOutgoing(
  { log, metrics }: { log: Pick<ConversationLog, 'append'>; metrics: Pick<Metrics, 'count'> },
  tenant: TenantId,
  outgoing: readonly OutgoingEvent[],
): Promise<void> {
  await Promise.all([...Map.groupBy(outgoing, ({ conversation }) => conversation)].map(sendTo));

  async function sendTo([conversation, own]: [ConversationId, OutgoingEvent[]]): Promise<void> {
    for (const { draft } of own) {
      try {
        await log.append({ tenant, conversation }, [draft]);
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
        metrics.count('posts_too_late', { kind: draft.kind });
      }
    }
  }
}
