import { text as readText } from 'node:stream/consumers';
import { TroupeError } from '../errors.ts';
import type { BusyPolicy, EventId } from '../events/index.ts';
import type { NewMessage } from '../troupe.ts';
import { authorNamed } from './author-named.ts';
import { type ClientOptions, connect } from './connect.ts';
import { onInterrupt } from './interrupt.ts';
import { readFiles } from './read-files.ts';
import { showAccepted, waitForAnswers } from './wait-for-answers.ts';

interface SendOptions extends ClientOptions {
  to?: string[];
  as?: string;
  id?: string;
  attach?: string[];
  wait?: boolean;
  whileBusy?: BusyPolicy;
}

export async function send(conversation: string, text: string, options: SendOptions): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  const attachments = await readFiles(options.attach ?? []);
  // It would be stored, and as it says nothing, answered by nobody: waiting for that would never end.
  if (content.trim() === '' && attachments.length === 0)
    throw new TroupeError('event_invalid', 'TEXT is empty: nothing to send', { path: 'content' });
  const message: NewMessage = {
    author: authorNamed(options.as),
    content,
    ...(attachments.length > 0 && { attachments }),
    ...(options.to && { to: options.to }),
    ...(options.id !== undefined && { id: options.id as EventId }),
    ...(options.whileBusy !== undefined && { whileBusy: options.whileBusy }),
  };
  const client = await connect(options, { needs: 'work', mayCreate: true });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  const asJson = options.json === true;
  const act = () => client.send(conversation, message);
  try {
    if (!client.isDirect && !options.wait) showAccepted(await act(), asJson);
    else await waitForAnswers(client, conversation, act, { stop, asJson });
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}
