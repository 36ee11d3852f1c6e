import { TroupeError } from '../errors.ts';
import { parseTurnId, type TurnId } from '../events/index.ts';
import { act, type ActOptions } from './act.ts';
import { authorNamed } from './author-named.ts';

/** Asks for a turn again that failed or was stopped. */
export async function retry(turn: string, options: ActOptions): Promise<void> {
  const parts = parseTurnId(turn);
  if (!parts) throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  const author = authorNamed(options.as);
  await act(
    parts.conversation,
    (client) => client.command({ command: 'retry', turn: turn as TurnId }, author),
    options,
  );
}
