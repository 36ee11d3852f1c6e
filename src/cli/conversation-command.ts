import type { AgentId, ConversationCommand, ConversationId, Event } from '../events/index.ts';
import { authorNamed } from './author-named.ts';
import { type ClientOptions, connect } from './connect.ts';
import { print, printJson } from './output.ts';

interface SayOptions extends ClientOptions {
  as?: string;
  reason?: string;
}

interface AgentOptions extends SayOptions {
  policy?: 'full' | 'summary' | 'fresh';
}

/** What is done about one agent, or one template. */
export type AgentAction = Extract<ConversationCommand, { agent: AgentId } | { template: AgentId }>['command'];

/** Who takes part in a conversation. */
export async function agentCommand(
  action: AgentAction,
  conversation: string,
  name: string,
  options: AgentOptions,
): Promise<void> {
  const { reason, policy } = options;
  const where = conversation as ConversationId;
  const agent = name.replace(/^@/, '') as AgentId;
  await say(commandOf(action, { conversation: where, agent }, { reason, policy }), options, 'agents');
}

function commandOf(
  action: AgentAction,
  about: { conversation: ConversationId; agent: AgentId },
  { reason, policy }: { reason: string | undefined; policy: AgentOptions['policy'] | undefined },
): ConversationCommand {
  switch (action) {
    case 'join':
      return { command: action, ...about, ...(policy && { policy }) };
    case 'leave':
    case 'block':
      return { command: action, ...about, ...(reason !== undefined && { reason }) };
    case 'spawn':
      return { command: action, conversation: about.conversation, template: about.agent };
    case 'unblock':
    case 'retire':
    case 'recall':
      return { command: action, ...about };
  }
}

/** Whether a conversation goes on. */
export async function endCommand(
  command: 'archive' | 'reopen',
  conversation: string,
  options: SayOptions,
): Promise<void> {
  const { reason } = options;
  const where = conversation as ConversationId;
  await say({ command, conversation: where, ...(reason !== undefined && { reason }) }, options, 'names');
}

/** The agents are needed to know who is meant, and whose words count. */
async function say(
  command: ConversationCommand,
  options: SayOptions,
  needs: 'agents' | 'names',
): Promise<void> {
  const author = authorNamed(options.as);
  const client = await connect(options, { needs });
  try {
    const event = await client.command(command, author);
    if (options.json) printJson({ event });
    else print(`${doneText(event)} in ${event.conversation}, seq ${event.seq}`);
  } finally {
    await client.close();
  }
}

function doneText(event: Event): string {
  if (event.kind === 'joined') return `@${event.body.agent} takes part`;
  if (event.kind === 'left') return `@${event.body.agent} ${event.body.blocked ? 'is blocked' : 'has left'}`;
  return event.kind === 'command' ? `${event.body.command} of @${event.body.agent}` : event.kind;
}
