import * as z from 'zod';
import { AgentId, ConversationId, TurnId } from './ids.ts';
import { Mode, RunId } from './mode.ts';

/**
 * What a person may ask. A command to an actor is an event once accepted, and its effect is another; `mode` and
 * `directive` are the very event that they append.
 */
export const Command = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('abort'), turn: TurnId }),
  z.strictObject({ command: z.literal('pause'), conversation: ConversationId, agent: AgentId }),
  z.strictObject({ command: z.literal('resume'), conversation: ConversationId, agent: AgentId }),
  z.strictObject({
    command: z.literal('mode'),
    conversation: ConversationId,
    mode: Mode,
    /** The run that is meant where several have directives. */
    run: RunId.optional(),
  }),
  z.strictObject({
    command: z.literal('directive'),
    conversation: ConversationId,
    run: RunId,
    /** What the run is for. */
    directive: z.string().min(1),
    /** What the present step of its workflow is for. */
    brief: z.string().optional(),
    /** Of that step. */
    status: z.enum(['active', 'completed']),
  }),
]);
export type Command = z.infer<typeof Command>;
export const COMMANDS = ['abort', 'pause', 'resume', 'mode', 'directive'] as const;

export const CommandBody = z.strictObject({
  command: z.enum(['pause', 'resume', 'abort', 'retry', 'fork', 'steer']),
  agent: AgentId.optional(),
  turn: TurnId.optional(),
});
