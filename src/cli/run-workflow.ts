import { text as readText } from 'node:stream/consumers';
import type { CommandOf, ConversationId } from '../events/index.ts';
import { type ActOptions, act } from './act.ts';
import { authorNamed } from './author-named.ts';

interface RunOptions extends ActOptions {
  directive?: string;
  run?: string;
  step?: string;
}

export async function runWorkflow(
  conversation: string,
  workflow: string,
  options: RunOptions,
): Promise<void> {
  const { directive, run, step } = options;
  const command: CommandOf<'run'> = {
    command: 'run',
    conversation: conversation as ConversationId,
    workflow,
    ...(directive !== undefined && {
      directive: directive === '-' ? await readText(process.stdin) : directive,
    }),
    ...(run !== undefined && { run }),
    ...(step !== undefined && { step }),
  };
  const author = authorNamed(options.as);
  await act(conversation, (client) => client.command(command, author), options, step === undefined);
}
