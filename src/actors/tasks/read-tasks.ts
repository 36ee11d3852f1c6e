import { type Event, type EventId, isAbout } from '../../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from '../../machines/task-book.ts';
import type { ConversationKey } from '../../store/store.ts';
import { createLogFolds, type LogFolds } from '../log/log-folds.ts';
import { type PageSource, readPages } from '../log/read-pages.ts';

/** What a log says of tasks, and by which event each was opened. */
export interface ReadTasks {
  book: TaskBook;
  /** Ids of the opening events, by task. */
  openedBy: Map<string, EventId>;
}

export async function readTasks(store: PageSource, log: ConversationKey): Promise<ReadTasks> {
  const read = newReadTasks();
  for await (const events of readPages(store, log, { after: 0 }))
    for (const event of events) foldReadTasks(read, event);
  return read;
}

function newReadTasks(): ReadTasks {
  return { book: newTaskBook(), openedBy: new Map() };
}

function foldReadTasks({ book, openedBy }: ReadTasks, event: Event): void {
  foldTask(book, event);
  const task = openingOf(event);
  if (task !== null && book.tasks.get(task)?.seq === event.seq) openedBy.set(task, event.id);
}

/** Logs whose tasks are remembered, for those who look again and again. */
const KEPT = 256;

export function createTaskFolds(store: PageSource): LogFolds<ReadTasks> {
  return createLogFolds(store, { begin: newReadTasks, fold: foldReadTasks, kept: KEPT });
}

function openingOf(event: Event): string | null {
  if (!isAbout(event, 'taskOpening')) return null;
  switch (event.kind) {
    case 'delegation.opened':
      return event.body.delegation;
    case 'question':
      return event.body.question;
    case 'approval.requested':
      return event.body.request;
  }
}
