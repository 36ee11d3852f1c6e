import { text as readText } from 'node:stream/consumers';
import type { ConversationId, TaskCommand } from '../events/index.ts';
import { authorNamed } from './author-named.ts';
import { type ClientOptions, connect } from './connect.ts';
import { onInterrupt } from './interrupt.ts';
import { showAccepted, waitForAnswers } from './wait-for-answers.ts';

interface TaskOptions extends ClientOptions {
  as?: string;
  wait?: boolean;
  note?: string;
  argsHash?: string;
  reason?: string;
}

export async function answer(
  conversation: string,
  question: string,
  text: string,
  options: TaskOptions,
): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  await say({ command: 'answer', conversation: conversation as ConversationId, question, content }, options);
}

export async function decide(
  conversation: string,
  request: string,
  approved: boolean,
  options: TaskOptions,
): Promise<void> {
  const { note, argsHash } = options;
  const more = { ...(note !== undefined && { note }), ...(argsHash !== undefined && { argsHash }) };
  const command = { command: 'decide', conversation: conversation as ConversationId } as const;
  await say({ ...command, request, approved, ...more }, options);
}

export async function cancel(conversation: string, task: string, options: TaskOptions): Promise<void> {
  const { reason } = options;
  const command = { command: 'cancelTask', conversation: conversation as ConversationId, task } as const;
  await say({ ...command, ...(reason !== undefined && { reason }) }, options);
}

/** What a person says to a task, and what agents make of it. */
async function say(command: TaskCommand, options: TaskOptions): Promise<void> {
  const { conversation } = command;
  const author = authorNamed(options.as);
  const asJson = options.json === true;
  const client = await connect(options, { needs: 'work' });
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
