import { TroupeError } from '../errors.ts';
import { boundedResponse } from '../net/bounded-response.ts';
import { fetchWithinOrigin } from '../net/within-origin.ts';
import { type ReplyLimits, replyTooLong } from './reply-limits.ts';

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What SDKs are given in place of `fetch`: they read lines of any length, and follow redirects with prompt and key. */
export function vendorFetch(limits: ReplyLimits, { streams = true } = {}): Fetch {
  return async (input, init) => {
    const response = await fetchWithinOrigin(input instanceof Request ? input.url : input, init).catch(
      (thrown: unknown) => {
        throw thrown instanceof TroupeError ? redirected(thrown) : thrown;
      },
    );
    return boundedResponse(response, {
      maxBytes: limits.receivedBytes,
      ...(streams && { maxEventBytes: limits.eventBytes }),
      tooLong: (what) => (what === 'pieces' ? crumbled() : replyTooLong(LIMITS[what], limits)),
    });
  };
}

const LIMITS = { answer: 'receivedBytes', event: 'eventBytes' } as const;

function crumbled(): TroupeError {
  return new TroupeError('provider_reply_too_long', 'the answer comes in pieces of a few bytes each');
}

function redirected({ message, data }: TroupeError): TroupeError {
  return new TroupeError('provider_redirected', `${message}. Is the base URL right?`, data);
}

/** What of ours an SDK was thrown and has put into an error of its own; null for any other. */
export function ownFailure(thrown: unknown): TroupeError | null {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 6; at = at.cause, depth += 1)
    if (at instanceof TroupeError) return at;
  return null;
}
