import * as z from 'zod';
import { AgentId, ConversationId, EventId } from './ids.ts';

/** As `join` of an agent. */
const Policy = z.enum(['full', 'summary', 'fresh']);
const Reason = z.string().max(1_000).optional();
const About = { conversation: ConversationId };
const AboutAgent = { ...About, agent: AgentId };

/** What people decide about who takes part in a conversation, and whether it goes on. Each is the event it appends. */
export const CONVERSATION_COMMANDS = [
  /** `policy`: what a newcomer sees of what came before; its own by default. */
  z.strictObject({ command: z.literal('join'), ...AboutAgent, policy: Policy.optional() }),
  z.strictObject({ command: z.literal('leave'), ...AboutAgent, reason: Reason }),
  z.strictObject({ command: z.literal('block'), ...AboutAgent, reason: Reason }),
  z.strictObject({ command: z.literal('unblock'), ...AboutAgent }),
  /** Kept, with all that it knows, until somebody has work for it. */
  z.strictObject({ command: z.literal('retire'), ...AboutAgent }),
  z.strictObject({ command: z.literal('recall'), ...AboutAgent }),
  /** Lets in the next agent of a template. */
  z.strictObject({ command: z.literal('spawn'), ...About, template: AgentId }),
  /** Passes on what somebody said who may not address agents. */
  z.strictObject({
    command: z.literal('dispatch'),
    ...About,
    event: EventId,
    /** What the agents are told with it. */
    note: z.string().min(1).optional(),
  }),
  z.strictObject({ command: z.literal('archive'), ...About, reason: Reason }),
  z.strictObject({ command: z.literal('reopen'), ...About, reason: Reason }),
] as const;
export type ConversationCommand = z.infer<(typeof CONVERSATION_COMMANDS)[number]>;

export const CONVERSATION_COMMAND_NAMES = [
  'join',
  'leave',
  'block',
  'unblock',
  'retire',
  'recall',
  'spawn',
  'dispatch',
  'archive',
  'reopen',
] as const satisfies readonly ConversationCommand['command'][];

export function isConversationCommand(command: { command: string }): command is ConversationCommand {
  return CONVERSATION_COMMAND_NAMES.some((name) => name === command.command);
}
