import {
  type AgentId,
  type CommandOf,
  type ConversationCommand,
  type ConversationId,
  type Event,
  type JoinPolicy,
  parseTurnId,
  type TurnId,
} from '../../events/index.ts';
import { authorNamed } from '../client/author-named.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { print, printJson } from '../render/output.ts';
import { TroupeError } from '../../base/errors.ts';

interface SayOptions extends ClientOptions {
  as?: string;
  reason?: string;
}

interface AgentOptions extends SayOptions {
  policy?: JoinPolicy;
}

/** Commands about one agent or template. */
type AgentAction = Extract<ConversationCommand, { agent: AgentId } | { template: AgentId }>['command'];

/** Changes who takes part in a conversation. */
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
    case 'reinstate':
    case 'recall':
    case 'compact':
      return { command: action, ...about };
  }
}

/** Archives or reopens a conversation. */
export async function endCommand(
  command: 'archive' | 'reopen',
  conversation: string,
  options: SayOptions,
): Promise<void> {
  const { reason } = options;
  const where = conversation as ConversationId;
  await say({ command, conversation: where, ...(reason !== undefined && { reason }) }, options, 'names');
}

/** Runs a command that the agents file may be needed for, to resolve agent names. */
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
  if (event.kind !== 'command') return event.kind;
  const { command, agent } = event.body;
  if (command === 'compact') return `@${agent} compacts its prompt before its next turn`;
  return `${command === 'recall' ? 'reinstate' : command} of @${agent}`;
}

interface ForkOptions extends ClientOptions {
  at?: number;
  turn?: string;
  asConversation?: string;
  as?: string;
}

/** Creates a conversation from the beginning of another, by default from all of it. */
export async function fork(conversation: string, options: ForkOptions): Promise<void> {
  const { at, turn, asConversation } = options;
  if (at !== undefined && turn !== undefined)
    throw new TroupeError(
      'config_invalid',
      'fork at an event or before a turn: give --at or --turn, not both',
    );
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
