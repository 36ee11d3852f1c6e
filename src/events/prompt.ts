import * as z from 'zod';
import { ImageRef } from './message.ts';
import { Adoption, Cut } from './compaction.ts';
import { AgentId, ConversationId, TurnId } from './ids.ts';
import { Reasoning, ToolCall, Usage } from './turn.ts';

export const LayerName = z.enum([
  'rules',
  'persona',
  'tools',
  'environment',
  'summary',
  'history',
  'missed',
  'trigger',
  'live',
  'note',
]);
export type LayerName = z.infer<typeof LayerName>;

/**
 * How long a layer stays the same: `epoch` until the next baseline, `summary` until the next compaction, `append` grows
 * only at its end, `turn` is recorded with the turn and then part of the history, `step` is in one request.
 */
export const Stability = z.enum(['epoch', 'summary', 'append', 'turn', 'step']);
export type Stability = z.infer<typeof Stability>;

/** A frozen layer. Its text is stored once under `hash`, not in the event. */
export const BaselineLayer = z.strictObject({
  name: LayerName,
  hash: z.string(),
  tokens: z.int().nonnegative(),
  /** Files in the text, by name: the hash of each. */
  sources: z.record(z.string(), z.string()).optional(),
});
export type BaselineLayer = z.infer<typeof BaselineLayer>;

/** The frozen layers of an agent's new epoch. `reason` is the cause; the new epoch breaks the provider's cache. */
export const BaselineBody = z.strictObject({
  epoch: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  layers: z.array(BaselineLayer),
  reason: z.string(),
  /** Present if the view begins with a compaction from here on. */
  adopts: Adoption.optional(),
});
export type BaselineBody = z.infer<typeof BaselineBody>;

/** A message of a prompt in a neutral format. `seqs` are the events that it renders: none only for synthetic results. */
export const PromptMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: z.string(), seqs: z.array(z.int()) }),
  z.object({
    role: z.literal('user'),
    content: z.string(),
    seqs: z.array(z.int()),
    /** In the order in which the content names them. */
    images: z.array(ImageRef).min(1).optional(),
  }),
  z.object({
    role: z.literal('assistant'),
    content: z.string(),
    calls: z.array(ToolCall).optional(),
    reasoning: Reasoning.optional(),
    seqs: z.array(z.int()),
  }),
  z.object({
    role: z.literal('tool'),
    call: z.string(),
    name: z.string(),
    content: z.string(),
    failed: z.boolean(),
    seqs: z.array(z.int()),
  }),
]);
export type PromptMessage = z.infer<typeof PromptMessage>;

/** Description of a tool for a model. `parameters` is a JSON schema (draft 2020-12). */
export const ToolSpec = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});
export type ToolSpec = z.infer<typeof ToolSpec>;

/** A named part of a prompt. */
export const PromptLayer = z.object({
  name: LayerName,
  stability: Stability,
  tokens: z.int().nonnegative(),
  hash: z.string(),
  /** Origin of the layer: a config path, an event id, or a range of seqs. */
  source: z.string(),
});
export type PromptLayer = z.infer<typeof PromptLayer>;

export const PromptTokens = z.object({
  total: z.int().nonnegative(),
  window: z.int().positive(),
  /** Reserved for the answer. */
  reserved: z.int().nonnegative(),
  free: z.int(),
  /** Expected count of the provider. */
  estimate: z.int().nonnegative(),
  /** Whether the estimate is corrected by earlier counts of the provider. */
  calibrated: z.boolean(),
  /** `estimate` as a percentage of the window without `reserved`. */
  percent: z.number().nonnegative(),
  level: z.enum(['normal', 'warning', 'critical']),
});
export type PromptTokens = z.infer<typeof PromptTokens>;

/**
 * The stored record of a model call: ranges and hashes, a few hundred bytes for any length of history. The messages are
 * rendered again from the log on demand; their hash must equal `chain`.
 */
export const PromptReceipt = z.object({
  turn: TurnId.nullable(),
  /** Number of the model call within its turn, from 1. */
  step: z.int().positive(),
  conversation: ConversationId,
  agent: AgentId,
  provider: z.string(),
  model: z.string(),
  mode: z.enum(['full', 'delta']),
  /** For a delta: the number of messages the session already had, the turn whose answers it has, and its baseline. */
  delta: z.object({ sent: z.int().nonnegative(), turn: TurnId.nullable(), baseline: z.string() }).optional(),
  upTo: z.int().nonnegative(),
  layers: z.array(PromptLayer),
  /** Number of messages. */
  count: z.int().nonnegative(),
  /** Chained hash over all messages in order. */
  chain: z.string(),
  tokens: PromptTokens,
  /** Indexes of the messages after which a provider with explicit caching sets a breakpoint. */
  breakpoints: z.array(z.int().nonnegative()),
  /** The compactions in force, oldest first. */
  cuts: z.array(Cut),
  cursor: z.object({ before: z.int().nullable(), after: z.int().nullable() }),
  usage: Usage.optional(),
});
export type PromptReceipt = z.infer<typeof PromptReceipt>;

/** A prompt with its messages and tools. */
export const PromptRecord = PromptReceipt.extend({
  messages: z.array(PromptMessage),
  tools: z.array(ToolSpec),
});
export type PromptRecord = z.infer<typeof PromptRecord>;
