import { TroupeError } from '../errors.ts';
import { type CommandOf, type ConversationId, parseTurnId, type TurnId } from '../events/index.ts';
import { authorNamed } from './author-named.ts';
import { type ClientOptions, connect } from './connect.ts';
import { print, printJson } from './output.ts';

interface ForkOptions extends ClientOptions {
  at?: number;
  turn?: string;
  asConversation?: string;
  as?: string;
}

/** A new conversation with the beginning of another; with all of it where nothing is said. */
export async function fork(conversation: string, options: ForkOptions): Promise<void> {
  const { at, turn, asConversation } = options;
  if (at !== undefined && turn !== undefined)
    throw new TroupeError('config_invalid', 'it is forked at an event or before a turn: --at or --turn');
  if (turn !== undefined && parseTurnId(turn)?.conversation !== conversation)
    throw new TroupeError('turn_unknown', `there is no turn "${turn}" in ${conversation}`, { turn });
  const author = authorNamed(options.as);
  const client = await connect(options, { needs: 'names' });
  try {
    const place: Omit<CommandOf<'fork'>, 'command'> = turn === undefined
      ? { conversation: conversation as ConversationId, seq: at ?? (await client.head(conversation)) }
      : { turn: turn as TurnId };
    const as = asConversation === undefined ? {} : { as: asConversation as ConversationId };
    const event = await client.command({ command: 'fork', ...place, ...as }, author);
    const made = event.kind === 'command' ? event.body.fork : undefined;
    if (options.json) printJson({ event, fork: made });
    else print(`${made?.conversation} has the first ${made?.seq} events of ${event.conversation}`);
  } finally {
    await client.close();
  }
}
