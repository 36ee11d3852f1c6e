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

/** `epoch`: frozen until the next baseline. `append`: grows at the end only. `turn`: recorded with its turn, then history. `step`: in one request. */
export const Stability = z.enum(['epoch', 'summary', 'append', 'turn', 'step']);
export type Stability = z.infer<typeof Stability>;

/** One frozen layer; its text is stored once under `hash` (content-addressed), not in the event. */
export const BaselineLayer = z.strictObject({
  name: LayerName,
  hash: z.string(),
  tokens: z.int().nonnegative(),
});
export type BaselineLayer = z.infer<typeof BaselineLayer>;

/** The system facts of an agent's epoch. A new one is a cache break, and `reason` is its cause. */
export const BaselineBody = z.strictObject({
  epoch: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  layers: z.array(BaselineLayer),
  reason: z.string(),
  /** Present where the view begins anew with it. */
  adopts: Adoption.optional(),
});
export type BaselineBody = z.infer<typeof BaselineBody>;

/** A message of a prompt, free of any vendor's shape. `seqs` are the events it renders; empty only for synthetic results. */
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

/** A tool as a model is told of it. `parameters` is a JSON schema (draft 2020-12). */
export const ToolSpec = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});
export type ToolSpec = z.infer<typeof ToolSpec>;

/** A named slice of a prompt. `source` says where it comes from: a config path, an event id, or a range of seqs. */
export const PromptLayer = z.object({
  name: LayerName,
  stability: Stability,
  tokens: z.int().nonnegative(),
  hash: z.string(),
  source: z.string(),
});
export type PromptLayer = z.infer<typeof PromptLayer>;

export const PromptTokens = z.object({
  total: z.int().nonnegative(),
  window: z.int().positive(),
  /** Kept free for the answer. */
  reserved: z.int().nonnegative(),
  free: z.int(),
  /** What the provider will count, as far as is known; `calibrated` by what it reported before. */
  estimate: z.int().nonnegative(),
  calibrated: z.boolean(),
  /** `estimate` in per cent of what the window leaves beside the answer. */
  percent: z.number().nonnegative(),
  level: z.enum(['normal', 'warning', 'critical']),
});
export type PromptTokens = z.infer<typeof PromptTokens>;

/**
 * What is stored per model call: ranges and hashes, a few hundred bytes however long the history. The messages are
 * rendered again from the log on demand and must give `chain` again.
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
  /** Of a delta: the session was sent so many of the view's messages before, holds the answers of this turn, and began with this baseline. */
  delta: z.object({ sent: z.int().nonnegative(), turn: TurnId, baseline: z.string() }).optional(),
  upTo: z.int().nonnegative(),
  layers: z.array(PromptLayer),
  /** How many messages, and the chained hash over all of them in order. */
  count: z.int().nonnegative(),
  chain: z.string(),
  tokens: PromptTokens,
  /** Indexes of the messages after which a provider with explicit caching sets a breakpoint. */
  breakpoints: z.array(z.int().nonnegative()),
  /** The rewrites in force, oldest first. */
  cuts: z.array(Cut),
  cursor: z.object({ before: z.int().nullable(), after: z.int().nullable() }),
  usage: Usage.optional(),
});
export type PromptReceipt = z.infer<typeof PromptReceipt>;

/** The whole prompt: the receipt with its messages and tools. */
export const PromptRecord = PromptReceipt.extend({
  messages: z.array(PromptMessage),
  tools: z.array(ToolSpec),
});
export type PromptRecord = z.infer<typeof PromptRecord>;
