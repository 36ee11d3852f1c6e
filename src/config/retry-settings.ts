import * as z from 'zod';

const DEFAULT_PATIENCE_MS = 300_000;
const MAX_PATIENCE_MS = 86_400_000;

/** How long a turn waits for the server of its model. */
export const RetrySettings = z.strictObject({
  /** While nobody answers there, or it loads its model, ms. 0: it is tried as often as after any other failure. */
  patienceMs: z.int().min(0).max(MAX_PATIENCE_MS).default(DEFAULT_PATIENCE_MS),
});
