import { type AgentId, type Author, type EventId, type Post, runtimeId } from '../../events/index.ts';
import type { Task } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';

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
): Post[] {
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
