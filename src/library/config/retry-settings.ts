import * as z from 'zod';

const DEFAULT_PATIENCE_MS = 300_000;
const MAX_PATIENCE_MS = 86_400_000;

/** Patience with a model server that is away. */
export const RetrySettings = z.strictObject({
  /**
   * Longest wait for a server that does not answer or is loading its model, ms. 0: retried like any other failure. At most
   * a day. Default 300,000.
   */
  patienceMs: z.int().min(0).max(MAX_PATIENCE_MS).default(DEFAULT_PATIENCE_MS),
});
