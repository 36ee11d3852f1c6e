import * as z from 'zod';
import { Adoption } from './compaction.ts';

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
