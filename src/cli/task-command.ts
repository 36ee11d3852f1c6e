import { text as readText } from 'node:stream/consumers';
import type { ConversationId, TaskCommand } from '../events/index.ts';
import { type ActOptions, act } from './act.ts';
import { authorNamed } from './author-named.ts';

interface TaskOptions extends ActOptions {
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
  const author = authorNamed(options.as);
  await act(command.conversation, (client) => client.command(command, author), options);
}
