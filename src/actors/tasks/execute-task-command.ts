import { TroupeError } from '../../errors.ts';
import { Author, type Command, type Event, type TaskCommand } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { answerQuestion } from './people/answer-question.ts';
import type { CallOffDeps } from './call-off/call-off-all.ts';
import { cancelTaskBy } from './call-off/cancel-task-by.ts';
import { decideApproval } from './people/decide-approval.ts';

export function isTaskCommand(command: Command): command is TaskCommand {
  const { command: name } = command;
  return name === 'answer' || name === 'decide' || name === 'cancelTask';
}

/** What people say to tasks; what comes of it is the event that ends the task. Throws `command_refused`, `task_unknown`. */
export async function executeTaskCommand(
  deps: CallOffDeps,
  log: ConversationKey,
  command: TaskCommand,
  author: Author,
): Promise<Event> {
  const by = Author.safeParse(author);
  if (!by.success) throw new TroupeError('event_invalid', 'author: is not valid', { path: 'author' });
  switch (command.command) {
    case 'answer':
      return answerQuestion(deps, log, command, by.data);
    case 'decide':
      return decideApproval(deps, log, command, by.data);
    case 'cancelTask':
      return cancelTaskBy(deps, log, command, by.data);
  }
}
