import { createHmac } from 'node:crypto';
import * as z from 'zod';
import { ConversationPatterns, isGranted } from '../access/keys.ts';
import { type Event, EVENT_KINDS } from '../../events/index.ts';
import { type KeyValue, updateEntry } from '../../base/key-value.ts';
import { DEFAULT_WEBHOOK_TIMEOUT_MS } from './webhook-settings.ts';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import type { SafeFetch } from '../../base/net/safe-fetch.ts';

/** Time for which a replaced secret still signs, ms. */
const OLD_SECRET_MS = 86_400_000;
const MAX_ROTATIONS = 4;
const MAX_URL = 2_000;

export const WebhookKind = z.enum(['*', ...EVENT_KINDS]);
export type WebhookKind = z.infer<typeof WebhookKind>;

/** An address that a request may go to. */
export const Address = z
  .string()
  .max(MAX_URL)
  .refine(
    (text) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? ''),
    'it is not an http or https URL',
  )
  .refine((text) => {
    const url = URL.parse(text);
    return !url || (url.username === '' && url.password === '' && url.hash === '');
  }, 'the URL must have no user, password or fragment; deliveries are signed instead')
  // For the API document. Only a URL parser can check the host.
  .meta({ format: 'uri', pattern: '^https?://[^\\s/?#@]+(?:[/?][^\\s#]*)?$' });

/** A webhook as a client asks for it. */
export const NewWebhook = z.strictObject({
  url: Address,
  /** A label for people. */
  name: z.string().trim().min(1).max(100).meta({ pattern: '\\S' }).optional(),
  /** Kinds of events; `*`: all. */
  on: z
    .array(WebhookKind)
    .min(1)
    .max(EVENT_KINDS.length + 1)
    .transform((kinds) => [...new Set(kinds)]),
  /** Ids, or prefixes that end with `*`. A thread belongs to its root conversation. Default: all of the tenant. */
  conversations: ConversationPatterns.min(1).optional(),
});
export type NewWebhook = z.input<typeof NewWebhook>;

const Time = z.int().nonnegative();

/** A webhook as it is stored. Its secrets are derived from `id` and `generation`, and not stored. */
export const Webhook = z.strictObject({
  /** Its id. */
  id: z.string(),
  /** Where deliveries go. */
  url: z.string(),
  /** A label for people. */
  name: z.string().optional(),
  /** Kinds of events; `*`: all. */
  on: z.array(WebhookKind),
  /** Ids, or prefixes that end with `*`. Absent: all of the tenant. */
  conversations: ConversationPatterns.optional(),
  /** Time, ms. */
  createdAt: Time,
  /** The key that created it, as `key:<id>`. Absent: it was created by direct access to the data. */
  createdBy: z.string().optional(),
  /** Since when it is disabled, ms. Absent: it is not. */
  disabledAt: Time.optional(),
  /** Why it is disabled. */
  reason: z.string().optional(),
  generation: z.int().positive(),
  /** Start of the last generations, newest first, ms. */
  rotations: z.array(Time).max(MAX_ROTATIONS).default([]),
});
export type Webhook = z.infer<typeof Webhook>;

/** A webhook as it is shown. */
export interface WebhookInfo extends Omit<Webhook, 'generation' | 'rotations'> {
  /** The previous secret also signs until this time, ms. */
  oldSecretUntil?: number;
  /** Its deliveries. */
  status: WebhookStatus;
}

/** Copies field by field: a new field must not be shown by accident. */
export function webhookInfo(webhook: Webhook, status: WebhookStatus): WebhookInfo {
  const { id, url, name, on, conversations, createdAt, createdBy, disabledAt, reason } = webhook;
  const [rotatedAt] = webhook.rotations;
  return {
    id,
    url,
    ...(name !== undefined && { name }),
    on,
    ...(conversations && { conversations }),
    createdAt,
    ...(createdBy !== undefined && { createdBy }),
    ...(disabledAt !== undefined && { disabledAt }),
    ...(reason !== undefined && { reason }),
    ...(rotatedAt !== undefined && { oldSecretUntil: rotatedAt + OLD_SECRET_MS }),
    status,
  };
}

/** The webhook with a new secret. */
export function rotate(webhook: Webhook, now: number): Webhook {
  const rotations = [now, ...webhook.rotations].slice(0, MAX_ROTATIONS);
  return { ...webhook, generation: webhook.generation + 1, rotations };
}

/** Generations whose secrets sign at `now`, newest first. Each signs until a day after the next one began. */
export function signingGenerations(webhook: Webhook, now: number): number[] {
  const { generation, rotations } = webhook;
  const isRecent = (at: number): boolean => now < at + OLD_SECRET_MS;
  const old = rotations.flatMap((at, n) => (isRecent(at) ? [generation - 1 - n] : []));
  return [generation, ...old];
}

export function wantsConversation({ conversations }: Webhook, conversation: string): boolean {
  return isGranted({ conversations: conversations ?? null }, conversation);
}

export function wantsKind({ on }: Webhook, { kind }: Event): boolean {
  return on.includes('*') || on.includes(kind);
}

type WebhookEntries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** The entry of all webhooks of a tenant: there are few. */
const KEY = 'webhooks';
const Webhooks = z.array(Webhook);

/** Oldest first. */
export async function readWebhooks(keyValue: WebhookEntries): Promise<Webhook[]> {
  return parse(await keyValue.get(KEY));
}

export async function readWebhook(keyValue: WebhookEntries, id: string): Promise<Webhook | null> {
  return (await readWebhooks(keyValue)).find((webhook) => webhook.id === id) ?? null;
}

/** `apply` may be called several times. It returns null to change nothing. */
export function changeWebhooks(
  keyValue: WebhookEntries,
  apply: (webhooks: Webhook[]) => Webhook[] | null,
): Promise<Webhook[]> {
  return updateEntry(keyValue, KEY, parse, apply);
}

/** Returns the webhook after the change; null if there is none. */
export async function changeWebhook(
  keyValue: WebhookEntries,
  id: string,
  apply: (webhook: Webhook) => Webhook | null,
): Promise<Webhook | null> {
  const webhooks = await changeWebhooks(keyValue, (all) => {
    const changed = all.map((each) => (each.id === id ? apply(each) : each));
    return changed.includes(null) ? null : changed.filter((each) => each !== null);
  });
  return webhooks.find((webhook) => webhook.id === id) ?? null;
}

/** Throws for an unreadable entry: treated as empty, the next change would delete all webhooks. */
function parse(text: string | null): Webhook[] {
  return text === null ? [] : Webhooks.parse(JSON.parse(text));
}

/** The state of a webhook's deliveries, written by the delivering process. */
export const WebhookStatus = z.object({
  delivered: z.int().nonnegative(),
  deliveredAt: Time.nullable(),
  /** Events skipped after repeated refusals. */
  refused: z.int().nonnegative(),
  lastRefused: z
    .object({ conversation: z.string(), seq: z.int(), event: z.string(), reason: z.string(), at: Time })
    .nullable(),
  /** Every attempt since this time has failed. Null if the last one succeeded. */
  failingSince: Time.nullable(),
  /** The last failure. */
  failedAt: Time.nullable(),
  lastError: z.string().nullable(),
  /** Time of the next attempt. */
  retryAt: Time.nullable(),
  /** Conversations that were behind at the last failure. */
  behind: z.int().nonnegative(),
});
export type WebhookStatus = z.infer<typeof WebhookStatus>;

/** Fields of a status without failures. */
export const NOT_FAILING = { failingSince: null, failedAt: null, lastError: null, retryAt: null } as const;
const UNTRIED: WebhookStatus = {
  delivered: 0,
  deliveredAt: null,
  refused: 0,
  lastRefused: null,
  ...NOT_FAILING,
  behind: 0,
};

type StatusEntries = Pick<KeyValue, 'get' | 'compareAndSet'>;

function keyOf(id: string): string {
  return `webhook-status/${id}`;
}

export async function readWebhookStatus(keyValue: StatusEntries, id: string): Promise<WebhookStatus> {
  return parseStatus(await keyValue.get(keyOf(id)));
}

/** Several processes may write the status of one webhook. */
export function changeWebhookStatus(
  keyValue: StatusEntries,
  id: string,
  apply: (status: WebhookStatus) => WebhookStatus,
): Promise<WebhookStatus> {
  return updateEntry(keyValue, keyOf(id), parseStatus, apply);
}

/** Unreadable counters start again at zero. */
function parseStatus(text: string | null): WebhookStatus {
  if (text === null) return UNTRIED;
  try {
    return WebhookStatus.safeParse(JSON.parse(text)).data ?? UNTRIED;
  } catch {
    // Invalid JSON counts as unreadable.
    return UNTRIED;
  }
}

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
function signWebhook(
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
