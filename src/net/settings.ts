import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import { reachRule } from './allow-list.ts';

const MAX_BYTES = 16 * 1_024 * 1_024;
const MAX_TIMEOUT_MS = 600_000;

/**
 * The only hosts that may be reached: `example.org`, `*.example.org`, `host:port`, an IP address, a range such as
 * `10.0.0.0/8`, or `*` for every public host. A non-public host needs an address, a range or a port. Default:
 * `['*']`.
 */
export const AllowList = z.array(z.string().superRefine(refineEntry)).max(1_000);

/** Limits of the fetch tool and of attachments given by address. */
export const FetchSettings = z.strictObject({
  allow: AllowList.optional(),
  /** Limit of one response, after decoding. */
  maxBytes: z.int().min(1_024).max(MAX_BYTES).optional(),
  /** Limit of one fetch, redirects included. Default 30,000 ms. */
  timeoutMs: z.int().min(100).max(MAX_TIMEOUT_MS).optional(),
});
export type FetchSettings = z.infer<typeof FetchSettings>;

function refineEntry(entry: string, context: z.RefinementCtx): void {
  try {
    reachRule([entry]);
  } catch (thrown) {
    if (!(thrown instanceof TroupeError)) throw thrown;
    context.addIssue({ code: 'custom', message: thrown.message });
  }
}
