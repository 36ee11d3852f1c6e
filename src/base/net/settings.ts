import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import type { InputOf } from '../input-of.ts';
import { reachRule } from './allow-list.ts';

/**
 * The only hosts that may be reached: `example.org`, `*.example.org`, `host:port`, an IP address, a range such as
 * `10.0.0.0/8`, or `*` for every public host. A non-public host needs an address, a range or a port. Default:
 * `['*']`.
 */
export const AllowList = z.array(z.string().superRefine(refineEntry)).max(1_000);

export const FetchSettings = z.strictObject({
  /** The only hosts that may be reached: `example.org`, `*.example.org`, `host:port`, an IP address, a range, `*`. Default `['*']`. */
  allow: AllowList.optional(),
});
/** Allowed targets of the tool `fetch` and of attachments given by address. */
export interface FetchSettings extends InputOf<typeof FetchSettings> {}

function refineEntry(entry: string, context: z.RefinementCtx): void {
  try {
    reachRule([entry]);
  } catch (thrown) {
    if (!(thrown instanceof TroupeError)) throw thrown;
    context.addIssue({ code: 'custom', message: thrown.message });
  }
}
