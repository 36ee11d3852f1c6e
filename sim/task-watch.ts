import type { Event, EventKind } from '../src/events/index.ts';
import { foldTask, newTaskFold, type Task, type TaskFold } from '../src/machines/task-fold.ts';
import type { EventRow } from '../src/store/driver.ts';
import type { MemoryData } from './memory-documents.ts';

/** Events that open or end tasks; all others are skipped unread. */
const OF_TASKS: readonly EventKind[] = [
  'delegation.opened',
  'delegation.ended',
  'question',
  'question.answered',
  'approval.requested',
  'approval.decided',
];

export interface OpenTask {
  conversation: string;
  task: Task;
}

/** The tasks of all conversations as stored. Each call reads on from the end of the last one. */
export function createTaskWatch(data: MemoryData): { open(): OpenTask[]; all(): OpenTask[] } {
  const folds = new Map<string, { fold: TaskFold; upTo: number }>();

  function look(): void {
    for (const [key, { bySeq }] of data.logs) {
      const known = folds.get(key) ?? { fold: newTaskFold(), upTo: 0 };
      folds.set(key, known);
      for (let row = bySeq.get(known.upTo + 1); row; row = bySeq.get(known.upTo + 1)) {
        known.upTo += 1;
        if (OF_TASKS.some((kind) => kind === row?.kind)) foldTask(known.fold, eventOfRow(row));
      }
    }
  }

  function all(): OpenTask[] {
    look();
    return [...folds].flatMap(([key, { fold }]) => {
      const conversation = key.slice(key.indexOf('/') + 1);
      return [...fold.tasks.values()].map((task) => ({ conversation, task }));
    });
  }
  return { all, open: () => all().filter(({ task }) => task.end === null) };
}

/** As stored, without a reader's validation: the invariants are checked against what is really there. */
export function eventOfRow(row: EventRow): Event {
  const { tenant, conversation, seq, id, at, kind, to, tokens, turn, data } = row;
  const columns = { tenant, conversation, seq, id, at, kind, to, tokens, ...(turn !== null && { turn }) };
  return { ...JSON.parse(data), ...columns } as Event;
}
