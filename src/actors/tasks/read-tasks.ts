import type { Event, EventId } from '../../events/index.ts';
import { foldTask, newTaskBook, type TaskBook } from '../../machines/task-book.ts';
import { type Log, PAGE_BYTES, type Store } from '../../store/store.ts';

const PAGE = 2_000;

/** What a log says of tasks, and by which event each was opened. */
export interface ReadTasks {
  book: TaskBook;
  /** Ids of the opening events, by task. */
  openedBy: Map<string, EventId>;
}

export async function readTasks(store: Pick<Store, 'read'>, log: Log): Promise<ReadTasks> {
  const book = newTaskBook();
  const openedBy = new Map<string, EventId>();
  for (let after = 0; ;) {
    const events = await store.read(log, { after, limit: PAGE, maxBytes: PAGE_BYTES });
    for (const event of events) {
      foldTask(book, event);
      const task = openingOf(event);
      if (task !== null && book.tasks.get(task)?.seq === event.seq) openedBy.set(task, event.id);
    }
    after = events.at(-1)?.seq ?? after;
    if (events.length === 0) return { book, openedBy };
  }
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
