import * as z from 'zod';
import { checkOptions } from '../../events/index.ts';

const Signal = z.instanceof(AbortSignal, { error: 'give the signal of an AbortController' }).optional();
/** Timers overflow above this, and end at once. */
const MAX_MS = 2 ** 31 - 1;
const Wait = z.strictObject({ signal: Signal, timeoutMs: z.number().positive().max(MAX_MS).optional() });
const Seq = z.int().nonnegative().optional();

/** What the options of each method may be, for programs without types. */
const OPTIONS = {
  ask: Wait,
  stream: Wait,
  rejoin: Wait,
  follow: z.strictObject({ after: Seq, signal: Signal }),
  events: z.strictObject({
    after: Seq,
    limit: z.int().positive().optional(),
    maxBytes: z.number().positive().optional(),
  }),
  tasks: z.strictObject({ open: z.boolean().optional() }),
  delete: z.strictObject({
    exported: z.union([z.int().nonnegative(), z.literal('none')], {
      error: 'say how many events you have exported, or "none"',
    }),
  }),
  idle: z.strictObject({ conversation: z.string().optional() }),
  watch: z.strictObject({ conversation: z.string().optional() }),
} as const satisfies Record<string, z.ZodType>;

/** Throws `event_invalid`, which names the method, every wrong option and what to give. */
export function checkOptionsOf(method: keyof typeof OPTIONS, options: unknown = {}): void {
  checkOptions(OPTIONS[method], options, method, 'event_invalid');
}
