import * as z from 'zod';
import { AgentId } from './ids.ts';
import { Mode } from './mode.ts';

/** Attachments of one event: more is refused before anything is stored. */
const MAX_ATTACHMENTS = 64;

const Hash = z.string().min(1).max(128);
export const Attachments = z.array(z.string().min(1).max(256)).max(MAX_ATTACHMENTS);

/**
 * What was injected into an event or attached to it, as ids and hashes: never the words themselves. The engine writes
 * it on `turn.started`, clients write `attachments` on what they send. No prompt is rendered from it.
 */
export const EventContext = z.strictObject({
  /** Hashes of the frozen layers in force; the texts are stored under them. */
  rules: Hash.optional(),
  persona: Hash.optional(),
  tools: Hash.optional(),
  environment: Hash.optional(),
  mode: Mode.optional(),
  run: z.string().optional(),
  /** By name: the hash of the text that a dynamic fragment gave for this turn, whether it was restated or not. */
  fragments: z.record(z.string(), Hash).optional(),
  /** Seqs of retrieved events. */
  memories: z.array(z.int().positive()).optional(),
  attachments: Attachments.optional(),
  /** Whom it would have addressed: its author may not address agents, and `dispatch` passes it on. */
  held: z.array(AgentId).min(1).optional(),
  /** A file brought it: it is history, and carries no authority here. */
  imported: z.literal(true).optional(),
  /** Its author was not trusted when it was said: see `trust.people`. */
  untrusted: z.literal(true).optional(),
  /** How its addressees were found, where it named none. */
  routed: z.enum(['agent', 'round', 'capability', 'rules']).optional(),
});
export type EventContext = z.infer<typeof EventContext>;
