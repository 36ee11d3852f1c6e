import { TroupeError } from '../../base/errors.ts';
import type { Author, Command, CommandOf, Event, TaskCommand } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { type CancelDeps, cancelTaskBy } from './cancel-task.ts';
import { endId } from './task-events.ts';
import { endByPerson, requireOpenTo, type PersonDeps, refusedInLog, taskForPerson } from './person-task.ts';
import { editedArgs } from './edited-call.ts';
import { hashText } from '../../context/index.ts';

export function isTaskCommand(command: Command): command is TaskCommand {
  const { command: name } = command;
  return name === 'answer' || name === 'decide' || name === 'cancelTask';
}

/** Executes a command of a person to a task. Returns the event that ends the task. Throws `command_refused`, `task_unknown`. */
export async function executeTaskCommand(
  deps: CancelDeps,
  log: ConversationKey,
  command: TaskCommand,
  by: Author,
): Promise<Event> {
  switch (command.command) {
    case 'answer':
      return answerQuestion(deps, log, command, by);
    case 'decide':
      return decideApproval(deps, log, command, by);
    case 'cancelTask':
      return cancelTaskBy(deps, log, command, by);
  }
}

/** Ends a question with the first answer of an entitled person. Repeating that answer returns its event. */
export async function answerQuestion(
  deps: PersonDeps,
  log: ConversationKey,
  { question, content }: Pick<CommandOf<'answer'>, 'question' | 'content'>,
  by: Author,
): Promise<Event> {
  if (content.trim() === '') throw invalid('an answer needs words');
  const attempt = { log, by, command: 'answer', task: question, said: content } as const;
  const found = await taskForPerson(deps, ['question'], attempt);
  const { task } = found;
  const known = { ...attempt, log: found.log, task: task.id };
  const { choices } = task.body;
  await requireOpenTo(deps, known, found);
  const choice = choices ? chosen(choices, content) : content;
  if (choice === undefined) throw invalid(`choose one of: ${choices?.join(', ')}`);
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      // The agent needs the answer to go on.
      whileBusy: 'steer',
      kind: 'question.answered',
      body: { question: task.id, outcome: 'answered', content: choice },
    },
    (end) => end.kind === 'question.answered' && end.body.content === choice,
  );
}

/** Takes a person's reply to a question as its answer. A reply that cannot be an answer stays a message: people ask back. */
export async function answerByReply(deps: PersonDeps, log: ConversationKey, event: Event): Promise<void> {
  if (event.kind !== 'message' || event.author.kind !== 'user' || event.replyTo === undefined) return;
  const asked = await deps.store.readById(log, event.replyTo);
  if (asked?.kind !== 'question') return;
  const answer = { question: asked.body.question, content: event.body.content };
  try {
    await answerQuestion(deps, log, answer, event.author);
  } catch (error) {
    if (!(error instanceof TroupeError) || error.policy !== 'fix_input') throw error;
  }
}

/** The offered choice that matches, ignoring case and surrounding space. */
function chosen(choices: readonly string[], content: string): string | undefined {
  const typed = content.trim().toLowerCase();
  return (
    choices.find((choice) => choice === content) ??
    choices.find((choice) => choice.trim().toLowerCase() === typed)
  );
}

function invalid(message: string): TroupeError {
  return new TroupeError('event_invalid', `content: ${message}`, { path: 'content' });
}

/**
 * Decides an approval: the first decision of an entitled person counts, and only for the requested call, with the arguments
 * as requested or as the person has changed them.
 */
export async function decideApproval(
  deps: PersonDeps,
  log: ConversationKey,
  { request, approved, note, argsHash, args }: Omit<CommandOf<'decide'>, 'command' | 'conversation'>,
  by: Author,
): Promise<Event> {
  const outcome = approved ? 'approved' : 'denied';
  if (args && !approved) {
    const message = 'args: only an approval can change the arguments; leave args out';
    throw new TroupeError('event_invalid', message, { path: 'args' });
  }
  const said = [outcome, argsHash ?? '', note ?? '', ...(args ? [JSON.stringify(args)] : [])].join(' ');
  const attempt = { log, by, command: 'decide', task: request, said } as const;
  const found = await taskForPerson(deps, ['approval'], attempt);
  const { task } = found;
  const known = { ...attempt, log: found.log, task: task.id };
  await requireOpenTo(deps, known, found);
  if (argsHash !== undefined && argsHash !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'this is an approval for other arguments');
  if (hashText(task.body.args) !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'its arguments are not those that its hash is of');
  const edited = args && (await editedArgs(deps, task, args));
  const changed = edited === undefined ? {} : { args: edited, argsHash: hashText(edited) };
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      kind: 'approval.decided',
      body: { request: task.id, outcome, note: note ?? '', ...changed },
    },
    (end) =>
      end.kind === 'approval.decided' &&
      end.body.outcome === outcome &&
      end.body.args === edited &&
      (note === undefined || end.body.note === note),
  );
}
