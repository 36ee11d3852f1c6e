import type { Event, EventId } from '../../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from '../../machines/task-book.ts';
import type { Log } from '../../store/store.ts';
import { type PageSource, readPages } from '../read-pages.ts';

/** What a log says of tasks, and by which event each was opened. */
export interface ReadTasks {
  book: TaskBook;
  /** Ids of the opening events, by task. */
  openedBy: Map<string, EventId>;
}

export async function readTasks(store: PageSource, log: Log): Promise<ReadTasks> {
  const book = newTaskBook();
  const openedBy = new Map<string, EventId>();
  for await (const events of readPages(store, log, { after: 0 })) {
    for (const event of events) {
      foldTask(book, event);
      const task = openingOf(event);
      if (task !== null && book.tasks.get(task)?.seq === event.seq) openedBy.set(task, event.id);
    }
  }
  return { book, openedBy };
}

function openingOf(event: Event): string | null {
  switch (event.kind) {
    case 'delegation.opened':
      return event.body.delegation;
    case 'question':
      return event.body.question;
    case 'approval.requested':
      return event.body.request;
    default:
      return null;
  }
}
