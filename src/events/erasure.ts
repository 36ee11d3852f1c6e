import * as z from 'zod';
import { EventId } from './ids.ts';

/** Most events that one erasure names; a larger one is several commands. */
export const MAX_ERASED = 500;

/**
 * Words of earlier events of the conversation were erased: `events` names the events, each with the hash of what is
 * left, which distinguishes an erased event from an altered one. Everything folded from the log before must be folded
 * again from the beginning.
 */
export const Erasure = z.strictObject({
  /** Id of the person whose words they were. */
  person: z.string().min(1).max(128),
  events: z
    .array(z.strictObject({ id: EventId, hash: z.string().min(1).max(128) }))
    .min(1)
    .max(MAX_ERASED),
});
export type Erasure = z.infer<typeof Erasure>;
