import { createHash } from 'node:crypto';
import type { ModelRequest, PromptMessage } from '../troupe.ts';
import { flattenMessages } from '../flatten-messages.ts';
import type { RemoteAgent } from './client.ts';

type OutgoingPart = { text: string } | { raw: string; mediaType: string };

/** A message to the remote agent. */
export interface Outgoing {
  messageId: string;
  role: 'ROLE_USER';
  parts: OutgoingPart[];
  contextId?: string;
  /** The task that waits for this message. */
  taskId?: string;
}

/**
 * The same for every try of a step, in every process, so that neither we nor the remote agent take it for a new message. A turn
 * that takes further events into the step asks something else.
 */
export function nameOf({ cacheKey, trace, messages }: ModelRequest): string {
  const { turn, step, purpose } = trace;
  const last = Math.max(0, ...messages.flatMap(({ seqs }) => seqs));
  const parts = JSON.stringify([cacheKey, turn, step, purpose, last]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 32);
}

export function messageOf(
  { messages, session, images }: ModelRequest,
  messageId: string,
  remote: Pick<RemoteAgent, 'takes'>,
): Outgoing {
  const { system } = flattenMessages(messages);
  const others = messages.filter(({ role }) => role !== 'system');
  const parts = others.flatMap((message) => partsOf(message, images, remote));
  const mark = session?.kind === 'resume' && session.mark.checkpoint !== '' ? session.mark : null;
  const taskId = mark?.checkpoint.slice('task:'.length) ?? '';
  return {
    messageId,
    role: 'ROLE_USER',
    parts: system === '' ? parts : [{ text: system }, ...parts],
    ...(mark && { contextId: mark.id }),
    ...(taskId !== '' && { taskId }),
  };
}

function partsOf(
  message: PromptMessage,
  bytes: ModelRequest['images'],
  { takes }: Pick<RemoteAgent, 'takes'>,
): OutgoingPart[] {
  const parts: OutgoingPart[] = flattenMessages([message]).texts.map((text) => ({ text }));
  for (const { hash, mediaType } of message.role === 'user' ? (message.images ?? []) : []) {
    const raw = bytes?.get(hash);
    if (raw === undefined) continue;
    if (takes(mediaType)) parts.push({ raw, mediaType });
    else parts.push({ text: `[the remote agent takes no ${mediaType}: an image is left out]` });
  }
  return parts;
}
