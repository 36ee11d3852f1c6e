import * as z from 'zod';
import { ConversationPatterns, isGranted } from '../access/principal.ts';
import { type Event, EVENT_KINDS } from '../events/index.ts';
import type { WebhookStatus } from './webhook-status.ts';

/** How long the old secret signs beside the new one. */
const OLD_SECRET_MS = 86_400_000;
/** So many rotations are remembered: more old secrets than these do not sign. */
const MAX_ROTATIONS = 4;
const MAX_URL = 2_000;

export const WebhookKind = z.enum(['*', ...EVENT_KINDS]);
export type WebhookKind = z.infer<typeof WebhookKind>;

const Address = z
  .string()
  .max(MAX_URL)
  .refine(
    (text) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? ''),
    'it is no http or https URL',
  )
  .refine((text) => {
    const url = URL.parse(text);
    return !url || (url.username === '' && url.password === '' && url.hash === '');
  }, 'a URL with a user, a password or a fragment is not called; the signature says who calls')
  // For those who read the API's description; whether its host can be one, only a URL parser tells.
  .meta({ format: 'uri', pattern: '^https?://[^\\s/?#@]+(?:[/?][^\\s#]*)?$' });

/** What is asked for. */
export const NewWebhook = z.strictObject({
  url: Address,
  /** For people. */
  name: z.string().trim().min(1).max(100).optional(),
  /** Kinds of events; `*`: all. */
  on: z
    .array(WebhookKind)
    .min(1)
    .max(EVENT_KINDS.length + 1)
    .transform((kinds) => [...new Set(kinds)]),
  /** Ids, or beginnings that end with `*`; a thread belongs to its root. Default: all of the tenant. */
  conversations: ConversationPatterns.min(1).optional(),
});
export type NewWebhook = z.input<typeof NewWebhook>;

const Time = z.int().nonnegative();

/** A webhook as it is stored. Its secrets are not: they are made of `id` and `generation`. */
export const Webhook = z.strictObject({
  id: z.string(),
  url: z.string(),
  name: z.string().optional(),
  on: z.array(WebhookKind),
  conversations: ConversationPatterns.optional(),
  createdAt: Time,
  /** The caller that made it, as `key:<id>`; without: who holds the data itself. */
  createdBy: z.string().optional(),
  disabledAt: Time.optional(),
  /** Why it is disabled. */
  reason: z.string().optional(),
  generation: z.int().positive(),
  /** When the last generations began, the newest first. */
  rotations: z.array(Time).max(MAX_ROTATIONS).optional(),
  /** The last of them, in records of earlier versions. */
  rotatedAt: Time.optional(),
});
export type Webhook = z.infer<typeof Webhook>;

/** A webhook as it may be shown. */
export interface WebhookInfo extends Omit<Webhook, 'generation' | 'rotations' | 'rotatedAt'> {
  /** Until when the secret before the last rotation signs too, ms. */
  oldSecretUntil?: number;
  status: WebhookStatus;
}

/** Field by field, so that nothing which is added to webhooks is shown by itself. */
export function webhookInfo(webhook: Webhook, status: WebhookStatus): WebhookInfo {
  const { id, url, name, on, conversations, createdAt, createdBy, disabledAt, reason } = webhook;
  const [rotatedAt] = rotationsOf(webhook);
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

/** With a new secret. */
export function rotate(webhook: Webhook, now: number): Webhook {
  const { rotatedAt: _, ...kept } = webhook;
  const rotations = [now, ...rotationsOf(webhook)].slice(0, MAX_ROTATIONS);
  return { ...kept, generation: webhook.generation + 1, rotations };
}

/** Generations of the secret that sign at this time, the newest first: each until a day after the next one began. */
export function signingGenerations(webhook: Webhook, now: number): number[] {
  const { generation } = webhook;
  const isRecent = (at: number): boolean => now < at + OLD_SECRET_MS;
  const old = rotationsOf(webhook).flatMap((at, n) => (isRecent(at) ? [generation - 1 - n] : []));
  return [generation, ...old];
}

function rotationsOf({ rotations, rotatedAt }: Webhook): readonly number[] {
  return rotations ?? (rotatedAt === undefined ? [] : [rotatedAt]);
}

export function wantsConversation({ conversations }: Webhook, conversation: string): boolean {
  return isGranted({ conversations: conversations ?? null }, conversation);
}

export function wantsKind({ on }: Webhook, { kind }: Event): boolean {
  return on.includes('*') || on.includes(kind);
}
