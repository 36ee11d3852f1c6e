import * as z from 'zod';
import { AgentId, ConversationId, TurnId } from './ids.ts';

/** What a person may ask of an actor. A command that was accepted is an event; its effect is another. */
export const Command = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('abort'), turn: TurnId }),
  z.strictObject({ command: z.literal('pause'), conversation: ConversationId, agent: AgentId }),
  z.strictObject({ command: z.literal('resume'), conversation: ConversationId, agent: AgentId }),
]);
export type Command = z.infer<typeof Command>;
export const COMMANDS = ['abort', 'pause', 'resume'] as const;

export const CommandBody = z.strictObject({
  command: z.enum(['pause', 'resume', 'abort', 'retry', 'fork', 'steer']),
  agent: AgentId.optional(),
  turn: TurnId.optional(),
});
