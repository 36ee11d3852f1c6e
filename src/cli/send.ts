import { text as readText } from 'node:stream/consumers';
import { TroupeError } from '../errors.ts';
import type { BusyPolicy, EventId } from '../events/index.ts';
import type { NewMessage } from '../troupe.ts';
import { type ActOptions, act } from './act.ts';
import { authorNamed } from './author-named.ts';
import { readFiles } from './read-files.ts';

interface SendOptions extends ActOptions {
  to?: string[];
  id?: string;
  attach?: string[];
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
  await act(conversation, (client) => client.send(conversation, message), options, true);
}
