import {
  type AgentId,
  type Author,
  ConversationId,
  type EventId,
  type OutgoingEvent,
  runtimeId,
  type TenantId,
  type TurnId,
} from '../../events/index.ts';
import type { Task } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import { hashText } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import type { Metrics } from '../../metrics.ts';
import type { ConversationLog } from '../log/conversation-log.ts';

/** The end of a task has one id, so whoever ends it first has ended it. */
export function endId(task: string): EventId {
  return runtimeId(task, 'end');
}

/** Of the opening in its thread. */
export function openedId(delegation: string): EventId {
  return runtimeId(delegation, 'opened');
}

/** Ends a task from above or by its deadline: a tombstone for its owner, and for an assignee a reason to stop. */
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
      const { thread, assignee } = task.body;
      const body = { delegation: task.id, outcome: 'aborted' as const, result: why };
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

/** A task as it is being opened, for the timer of its deadline. */
export function opening(opened: Pick<Task, 'kind' | 'body' | 'id'>, owner: AgentId): Task {
  return { ...opened, owner, group: opened.id, seq: 0, at: 0, end: null } as Task;
}

function endedBy(by: Author): 'expired' | 'withdrawn' {
  return by.kind === 'system' ? 'expired' : 'withdrawn';
}

const ID_DIGITS = 12;
/** Of a conversation id; what is left after it is for the task. */
const MOST_ROOT = 100;

/** The same for every attempt at the turn: who opens a task again opens the same one. */
export function taskIdOf(
  kind: 'd' | 'q' | 'a',
  turn: TurnId,
  { step, index }: { step: number; index: number },
): string {
  return `${kind}-${hashText(`${turn}/${step}.${index}`).slice(0, ID_DIGITS)}`;
}

/** The conversation that a task is worked on in: named after the first one of all, however deep it is. */
export function threadOf(root: ConversationId, task: string): ConversationId {
  const stem =
    root.length <= MOST_ROOT ? root : `${root.slice(0, MOST_ROOT - 9)}.${hashText(root).slice(0, 8)}`;
  return ConversationId.parse(`${stem}.${task}`);
}

/**
 * Brings posts to their logs, those for one log in order. Safe to repeat. Where another event has the id, that one
 * counts: somebody else has ended the task.
 */
export async function sendOutgoing(
  { log, metrics }: { log: Pick<ConversationLog, 'append'>; metrics: Pick<Metrics, 'count'> },
  tenant: TenantId,
  posts: readonly OutgoingEvent[],
): Promise<void> {
  await Promise.all([...Map.groupBy(posts, ({ conversation }) => conversation)].map(sendTo));

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
