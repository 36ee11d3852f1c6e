import { text as readText } from 'node:stream/consumers';
import type { CommandOf, ConversationId } from '../events/index.ts';
import { authorNamed } from './author-named.ts';
import { type ClientOptions, connect } from './connect.ts';
import { onInterrupt } from './interrupt.ts';
import { showAccepted, waitForAnswers } from './wait-for-answers.ts';

interface RunOptions extends ClientOptions {
  directive?: string;
  run?: string;
  step?: string;
  as?: string;
  wait?: boolean;
}

export async function runWorkflow(
  conversation: string,
  workflow: string,
  options: RunOptions,
): Promise<void> {
  const { directive, run, step } = options;
  const asJson = options.json === true;
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
  const client = await connect(options, { needs: 'work', mayCreate: step === undefined });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  const act = () => client.command(command, author);
  try {
    if (!client.isDirect && !options.wait) showAccepted(await act(), asJson);
    else await waitForAnswers(client, conversation, act, { stop, asJson });
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}
