import * as z from 'zod';
import { EventId } from './ids.ts';

/** Most events that one erasure names; a larger one is several commands. */
export const MAX_ERASED = 500;

/**
 * Words of earlier events of the conversation are gone: `events` names them, each with the hash of what stands in their place, so that
 * an erased event is told from a changed one. Whoever has folded the log before folds it again from its beginning.
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
