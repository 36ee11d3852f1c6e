import { createHmac } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { SafeFetch } from '../../base/net/safe-fetch.ts';
import { signingGenerations, type Webhook } from './webhook.ts';
import { DEFAULT_WEBHOOK_TIMEOUT_MS } from './webhook-settings.ts';

export interface PostParts {
  fetch: (...args: Parameters<SafeFetch>) => ReturnType<SafeFetch>;
  clock: Pick<Clock, 'now'>;
  secretOf: (id: string, generation: number) => string;
  timeoutMs?: number | undefined;
}

/**
 * Outcome of a request. `taken`: delivered. `refused`: a retry is unlikely to succeed. `failed`: it may succeed. `gone`: the
 * receiver wants no more events. `why` names only the host: the rest of the address may hold a secret.
 */
export type PostAnswer =
  | { outcome: 'taken'; status: number }
  | { outcome: 'refused' | 'gone'; status: number; why: string }
  | { outcome: 'failed'; status: number | null; why: string; retryAfterMs: number | null };

/** Client errors worth a retry: timeout, too early, too many requests. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429]);

/** Sends one signed request. Throws only if `signal` has aborted. */
export async function postWebhook(
  webhook: Webhook,
  { id, payload }: { id: string; payload: object },
  parts: PostParts,
  signal?: AbortSignal,
): Promise<PostAnswer> {
  const { clock, secretOf } = parts;
  const now = clock.now();
  const body = JSON.stringify(payload);
  const secrets = signingGenerations(webhook, now).map((generation) => secretOf(webhook.id, generation));
  const headers = { 'content-type': 'application/json', ...signWebhook({ id, at: now, body }, secrets) };
  return post(webhook.url, { headers, body }, parts, signal);
}

/** Sends one request. Redirects are not followed. Throws only if `signal` has aborted. */
export async function post(
  url: string,
  { headers: given, body }: { headers: Readonly<Record<string, string>>; body: string },
  { fetch, clock, timeoutMs = DEFAULT_WEBHOOK_TIMEOUT_MS }: Omit<PostParts, 'secretOf'>,
  signal?: AbortSignal,
): Promise<PostAnswer> {
  const now = clock.now();
  try {
    const { status, headers } = await fetch(url, {
      method: 'POST',
      headers: { 'user-agent': 'Troupe', ...given },
      body,
      maxRedirects: 0,
      // The body of the answer is not read.
      answer: 'head',
      timeoutMs,
      ...(signal && { signal }),
    });
    return judge(status, `${hostOf(url)} answered ${status}`, retryAfter(headers['retry-after'], now));
  } catch (thrown) {
    if (signal?.aborted || !(thrown instanceof TroupeError)) throw thrown;
    // Also for a forbidden address: its name may later resolve elsewhere, or the operator may allow it.
    return { outcome: 'failed', status: null, why: thrown.message, retryAfterMs: null };
  }
}

function judge(status: number, why: string, retryAfterMs: number | null): PostAnswer {
  if (status >= 200 && status < 300) return { outcome: 'taken', status };
  if (status === 410) return { outcome: 'gone', status, why };
  if (status >= 400 && status < 500 && !TRANSIENT.has(status)) return { outcome: 'refused', status, why };
  const reason = status >= 300 && status < 400 ? `${why}: redirects are not followed` : why;
  return { outcome: 'failed', status, why: reason, retryAfterMs };
}

/** `Retry-After` in ms: the header holds seconds or a date. */
function retryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'the receiver';
}

const PREFIX = 'whsec_';

/** A webhook's secret. Derived from the store's secret, so it is the same in every process and never stored. */
export function webhookSecret(storeSecret: string | Uint8Array, id: string, generation: number): string {
  const key = createHmac('sha256', storeSecret).update(`troupe webhook ${id} ${generation}`).digest();
  return `${PREFIX}${key.toString('base64')}`;
}

/** Headers of Standard Webhooks: one signature per secret, over id, time and body, against changes and replays. */
export function signWebhook(
  { id, at, body }: { id: string; at: number; body: string },
  secrets: readonly string[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
