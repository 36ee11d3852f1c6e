import * as z from 'zod';
import { AgentId, HandoffDraft, Join, TodosBody } from '../events/index.ts';

/** When the tasks of a turn wake their owner, and when they end by themselves. */
const waiting = {
  /** False: the turn goes on meanwhile. The results wake the agent all the same. */
  wait: z.boolean(),
  join: Join,
  /** From now, ms; the troupe's limit where nothing is said. */
  deadlineMs: z.number().positive().optional(),
};

/**
 * What a tool may ask of the turn beside its text. Whether it may is the engine's to say; it is carried out when the turn
 * commits, and not at all if it does not end well.
 */
export const ToolRequest = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('handoff'),
      to: AgentId,
      summary: HandoffDraft,
      /** How a summary without a goal is completed; without this it needs one. */
      fill: z.enum(['extract', 'summarise']).optional(),
    })
    .refine(({ summary, fill }) => fill !== undefined || summary.goal.trim() !== '', {
      path: ['summary', 'goal'],
      message: 'a handoff needs a goal',
    }),
  z.strictObject({
    kind: z.literal('delegate'),
    how: z.enum(['delegate', 'ask']),
    to: z.string(),
    task: z.string(),
    /** Also to somebody who is waiting for this very work. */
    force: z.boolean(),
    ...waiting,
  }),
  z.strictObject({ kind: z.literal('followUp'), task: z.string(), text: z.string(), ...waiting }),
  z.strictObject({
    kind: z.literal('question'),
    text: z.string(),
    by: z.array(z.string()),
    choices: z.array(z.string()).optional(),
    ...waiting,
  }),
  z.strictObject({ kind: z.literal('cancelTask'), task: z.string(), reason: z.string() }),
  /** `at`: ms since the epoch; or `inMs` from now. */
  z.strictObject({
    kind: z.literal('remind'),
    text: z.string(),
    at: z.number().optional(),
    inMs: z.number().positive().optional(),
  }),
  TodosBody.extend({ kind: z.literal('todos') }),
  /** The turn ends without words, on purpose. */
  z.strictObject({ kind: z.literal('noResponse'), reason: z.string() }),
]);
export type ToolRequest = z.infer<typeof ToolRequest>;
export type RequestOf<K extends ToolRequest['kind']> = Extract<ToolRequest, { kind: K }>;
