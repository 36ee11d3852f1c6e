import type { AgentId, EventDraft, TodoItem, TodosBody } from '../../events/index.ts';
import type { TaskBook } from '../../machines/task-book.ts';

/** An agent's list as its running turn has left it; null where it never made one. */
export function listOf(book: TaskBook, agent: AgentId, outputs: readonly EventDraft[]): TodosBody | null {
  const latest = outputs.findLast(({ kind }) => kind === 'todos');
  return latest?.kind === 'todos' ? latest.body : (book.todos.get(agent) ?? null);
}

/** What of a list is to be done now. */
export function openItems(list: TodosBody | null): TodoItem[] {
  if (!list || list.later) return [];
  return list.items.filter(({ status }) => status === 'pending' || status === 'active');
}
