import type { Event } from '../events/index.ts';
import type { Client } from './client.ts';
import { type ClientOptions, connect } from './connect.ts';
import { onInterrupt } from './interrupt.ts';
import { showAccepted, waitForAnswers } from './wait-for-answers.ts';

export interface ActOptions extends ClientOptions {
  as?: string;
  wait?: boolean;
}

/**
 * Does something in a conversation and shows what agents make of it: with a server only what was accepted, unless
 * `--wait` asks for their answers; without one always until they are quiet, since nobody else would go on.
 */
export async function act(
  conversation: string,
  deed: (client: Client) => Promise<Event>,
  options: ActOptions,
  mayCreate = false,
): Promise<void> {
  const asJson = options.json === true;
  const client = await connect(options, { needs: 'work', mayCreate });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  try {
    if (!client.isDirect && !options.wait) showAccepted(await deed(client), asJson);
    else await waitForAnswers(client, conversation, () => deed(client), { stop, asJson });
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}
