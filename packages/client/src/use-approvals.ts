import { useCallback, useEffect, useState } from 'react';
import type { TroupeError } from './troupe.ts';
import type { Task, TroupeClient } from './troupe-client.ts';

/** What agents ask people for. */
export interface Approvals {
  /** Open approvals: the call is in `tool` and `args`. */
  approvals: readonly Task[];
  /** Open questions: the words are in `text`. */
  questions: readonly Task[];
  /** Why the list cannot be read. Null: it can. */
  error: TroupeError | null;
  /** Decides an approval. Throws `TroupeError`, also if somebody has decided before. */
  decide: (task: Task, approved: boolean, note?: string) => Promise<void>;
  /** Answers a question. Throws `TroupeError`. */
  answer: (task: Task, content: string) => Promise<void>;
}

const NONE: readonly Task[] = [];

/** The open approvals and questions of a conversation, while the component is mounted. Whoever decides one, it is gone for all. */
export function useApprovals(client: TroupeClient, conversation: string): Approvals {
  const [open, setOpen] = useState<readonly Task[]>(NONE);
  const [error, setError] = useState<TroupeError | null>(null);

  useEffect(() => {
    const unmounted = new AbortController();
    const { signal } = unmounted;
    setOpen(NONE);
    setError(null);
    let isStale = false;
    let isReading = false;
    const fail = (failure: TroupeError) => {
      if (!signal.aborted) setError(failure);
    };
    async function readAgain() {
      isReading = true;
      try {
        while (isStale && !signal.aborted) {
          isStale = false;
          const tasks = await client.tasks(conversation, { open: true, signal });
          if (signal.aborted) return;
          setOpen(tasks);
          setError(null);
        }
      } finally {
        isReading = false;
      }
    }
    /** One request at a time, and one more if something has changed meanwhile. */
    const refresh = () => {
      isStale = true;
      if (!isReading) readAgain().catch(fail);
    };
    async function read() {
      let isFirst = true;
      // The newest event says that there is a conversation, whose list has what was asked before.
      for await (const frame of client.follow(conversation, { newest: 1, signal })) {
        if (frame.type !== 'event') continue;
        if (isFirst || TASK_KINDS.test(frame.event.kind)) refresh();
        isFirst = false;
      }
    }
    read().catch(fail);
    return () => unmounted.abort();
  }, [client, conversation]);

  return {
    approvals: open.filter(({ kind }) => kind === 'approval'),
    questions: open.filter(({ kind }) => kind === 'question'),
    error,
    decide: useCallback(
      (task, approved, note) => client.decide(conversation, task, { approved, note }),
      [client, conversation],
    ),
    answer: useCallback(
      (task, content) => client.answer(conversation, task, content),
      [client, conversation],
    ),
  };
}

/** Kinds of events that may open or end a task. */
const TASK_KINDS = /^(?:approval|question|command)/;
