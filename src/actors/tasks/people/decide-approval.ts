import { hashText } from '../../../context/index.ts';
import type { Author, CommandOf, Event } from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import { endId } from '../end-task.ts';
import { endByPerson, mustBeOpenTo, type PersonDeps, taskForPerson } from './person-task.ts';
import { refusedInLog } from './refuse-person.ts';

/** The first decision of somebody who may decide counts, and for the very call that was asked for. */
export async function decideApproval(
  deps: PersonDeps,
  log: ConversationKey,
  { request, approved, note, argsHash }: Omit<CommandOf<'decide'>, 'command' | 'conversation'>,
  by: Author,
): Promise<Event> {
  const outcome = approved ? 'approved' : 'denied';
  const said = [outcome, argsHash ?? '', note ?? ''].join(' ');
  const attempt = { log, by, command: 'decide', task: request, said } as const;
  const found = await taskForPerson(deps, ['approval'], attempt);
  const { task } = found;
  const known = { ...attempt, log: found.log, task: task.id };
  await mustBeOpenTo(deps, known, found);
  if (argsHash !== undefined && argsHash !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'this is an approval for other arguments');
  if (hashText(task.body.args) !== task.body.argsHash)
    throw await refusedInLog(deps, known, 'its arguments are not those that its hash is of');
  return endByPerson(
    deps,
    known,
    {
      id: endId(task.id),
      author: by,
      to: [task.owner],
      kind: 'approval.decided',
      body: { request: task.id, outcome, note: note ?? '' },
    },
    (end) =>
      end.kind === 'approval.decided' &&
      end.body.outcome === outcome &&
      (note === undefined || end.body.note === note),
  );
}
