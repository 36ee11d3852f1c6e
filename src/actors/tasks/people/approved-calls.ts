import { hashText } from '../../../context/index.ts';
import type { Event, ToolCall } from '../../../events/index.ts';
import type { TaskBook } from '../../../machines/task-book.ts';

/** The calls that these decisions allow, exactly as they were asked for. Each decision is an input of one turn only. */
export function approvedCalls(tasks: TaskBook, inputs: readonly Event[]): ToolCall[] {
  return inputs.flatMap((event) => {
    if (event.kind !== 'approval.decided' || event.body.outcome !== 'approved') return [];
    const task = tasks.tasks.get(event.body.request);
    if (task?.kind !== 'approval' || task.end?.seq !== event.seq) return [];
    const { request, tool, args, argsHash } = task.body;
    if (hashText(args) !== argsHash) return [];
    return [{ id: request, name: tool, args }];
  });
}
