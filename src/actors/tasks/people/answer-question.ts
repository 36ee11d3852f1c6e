import { TroupeError } from '../../../errors.ts';
import type { Author, CommandOf, Event } from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import { endId } from '../end-task.ts';
import { endByPerson, mustBeOpenTo, type PersonDeps, taskForPerson } from './person-task.ts';

/** The first answer of somebody who may answer ends the question; the same again is that answer. */
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
  await mustBeOpenTo(deps, known, found);
  const choice = choices ? chosen(choices, content) : content;
  if (choice === undefined) throw invalid(`choose one of: ${choices?.join(', ')}`);
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      // It is what the agent needs in order to go on.
      whileBusy: 'steer',
      kind: 'question.answered',
      body: { question: task.id, outcome: 'answered', content: choice },
    },
    (end) => end.kind === 'question.answered' && end.body.content === choice,
  );
}

/**
 * A message of a person in reply to a question answers it too. What cannot be an answer stays a message: somebody may
 * well ask back.
 */
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

/** As it was offered, however it was typed. */
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
