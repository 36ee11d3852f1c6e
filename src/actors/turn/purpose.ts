import { type Event, isTaskEnd } from '../../events/index.ts';
import { isTaskOpen, type TaskBook } from '../../machines/task-book.ts';

/** Text of the live item `task`: the purpose of this turn. */
export function purposeOf(trigger: Event, tasks: TaskBook): string {
  if (trigger.kind === 'handoff')
    return `@${trigger.author.id} handed over to you: take it from the summary above and answer the conversation`;
  if (trigger.kind === 'delegation.opened')
    return `do the task that @${trigger.author.id} gave you; your last words are its result`;
  if (trigger.kind === 'approval.decided')
    return 'it was decided what you asked for: a call that was approved is made for you first; go on from there';
  if (isTaskEnd(trigger)) return 'what you waited for has come: go on';
  if (trigger.kind === 'command') return 'take the turn again that the reminder above is about';
  return isTaskOpen(tasks)
    ? 'answer the last message; your last words are the result of your task'
    : 'answer the last message';
}
